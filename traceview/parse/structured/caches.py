"""Cache look-ups: fx_graph_cache_*, aotautograd_cache_*, dynamo_cache_*, PGO code state."""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import Any

import msgspec

from traceview.parse.cutting import Record
from traceview.parse.structured.decode import decode
from traceview.parse.structured.state import Compile, LookUp, Reader, Row

PATTERN = re.compile(
    r"(?P<cache>fx_graph|fx_graph_bundled|aotautograd|dynamo|precompile|autotune|triton_bundle)"
    r"_cache_(?P<event>hit|miss|bypass|disabled|guard_miss|pickle_failure|entries|exception"
    r"|saved|loaded)"
)
CODE_STATE = re.compile(r"(?P<event>get|put)_(?P<extra>extra_)?(?P<place>local|remote)_code_state")
_CODE_STATE_EVENTS = {"get": "loaded", "put": "saved"}


class _CacheInfo(msgspec.Struct):
    """The fields that are kept; of ``components`` what changes, see ``components``."""

    key: Any = None
    components: Any = None
    cache_status_detailed: Any = None
    cache_bypass_reason: Any = None
    time_saved_ms: Any = None
    time_saved_ns: Any = None
    error: Any = None
    reason: Any = None


_INFO = msgspec.json.Decoder(_CacheInfo)


def cache_artifact(reader: Reader, record: Record) -> None:
    """One look-up; an FX graph look-up also names the key of the code that stands before it."""
    match = PATTERN.fullmatch(record.name or "")
    if match is None:
        return
    compile = reader.process.find(record)
    info = decode(reader, record, record.raw, _INFO) or _CacheInfo()
    key = info.key if isinstance(info.key, str) else None
    cache, event = match["cache"], match["event"]
    section = None
    if compile is not None and cache.startswith("fx_graph") and event in ("hit", "miss", "bypass"):
        section = compile.add_key(key)
    aot_id = section.graph.get("aot_id") if section else None
    saved_ms = info.time_saved_ms
    if not isinstance(saved_ms, int | float):
        saved_ns = info.time_saved_ns
        saved_ms = saved_ns / 1e6 if isinstance(saved_ns, int | float) else None
    if event == "miss" and info.cache_status_detailed == "guard_miss":
        event = "guard_miss"
    row = {
        "cache": cache,
        "event": event,
        "key": key,
        "time_saved_ms": saved_ms,
        "reason": _text(info.cache_bypass_reason) or _text(info.error) or _text(info.reason),
        "is_forward": None if aot_id is None else not aot_id.endswith("backward"),
    }
    reader.process.add("cache_events", record, compile, row)
    components(reader, record, compile, row, info.components)


def disabled_cache(reader: Reader, record: Record, name: str) -> None:
    """A cache that is switched off: since 2.8 torch says so in a chromium instant alone."""
    match = PATTERN.fullmatch(name)
    if match is not None and match["event"] == "disabled":
        row = {"cache": match["cache"], "event": "disabled"}
        reader.process.add("cache_events", record, reader.process.find(record), row)


def code_state_artifact(reader: Reader, record: Record) -> None:
    """Profile-guided state of automatic dynamic shapes was read or written."""
    match = CODE_STATE.fullmatch(record.name or "")
    if match is None:
        return
    row = {"cache": "pgo", "event": _CODE_STATE_EVENTS[match["event"]], "reason": match["place"]}
    reader.process.add("cache_events", record, reader.process.find(record), row)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


# Components of a key: the ``components`` of a look-up, ``[hash] name: value`` lines. A key has some
# 640 of them, 70 KB, and nearly all are settings that do not change. So a row is made only of what
# differs from the process's look-up before; the first one gives them all.

_Parts = tuple[str, str | None, str | None]
"""Name, digest and value of a component."""

_DIGEST = re.compile(r"\[\w{1,200}")
_NAME_CHARACTERS = 300
_VALUE_CHARACTERS = 400


def components(
    reader: Reader, record: Record, compile: Compile | None, look_up: Row, lines: object
) -> None:
    """Rows of table ``cache_components`` for one look-up, whose row is ``look_up``."""
    found = lines if isinstance(lines, list) else []
    if {*map(type, found)} != {str}:  # the log is damaged
        found = [line for line in found if isinstance(line, str)]
    if not found:
        return
    process, cache = reader.process, look_up["cache"]
    head = process.head(record, compile) | {
        "pid": process.pid,
        "cache": cache,
        "lookup": process.look_ups[cache],
        "event": look_up["event"],
        "key": look_up["key"],
    }
    process.look_ups[cache] += 1
    changed = _changed(found, process.components.setdefault(cache, LookUp()))
    if changed:
        names, digests, values = map(list, zip(*changed, strict=True))
        columns = {"name": names, "digest": digests, "value": values}
        process.add_block("cache_components", head, columns)


def _changed(found: list[str], last: LookUp) -> list[_Parts]:
    """What is not as it was, then the names of what is gone; ``last`` becomes ``found``.

    The graph's inputs come first; the settings after them stay where they were, seen from the end.
    """
    pairs = zip_longest(reversed(found), reversed(last.lines))
    moved = [(line, before) for line, before in pairs if line != before][::-1]
    once = len(last.known) == len(last.lines)  # else a line that moved may still stand elsewhere
    last.lines = found
    new = {line: _parts(line) for line, _ in moved if line is not None and line not in last.known}
    changed = [new[line] for line, _ in moved if line in new]
    gone = {before for _, before in moved}
    gone.difference_update((line for line, _ in moved) if once else found)
    present = {name for name, _, _ in changed}
    for line in [line for line in last.known if line in gone]:
        name = _parts(line)[0]
        del last.known[line]
        if name not in present:
            changed.append((name, None, None))
    last.known.update(dict.fromkeys(new))
    return changed


def _parts(line: str) -> _Parts:
    digest, ended, named = line.partition("] ")
    name, colon, value = named.partition(": ")
    if ended and colon and _DIGEST.fullmatch(digest) and 0 < len(name) <= _NAME_CHARACTERS:
        return name, digest[1:], value[:_VALUE_CHARACTERS]
    return line[:100], "?", line[:_VALUE_CHARACTERS]
