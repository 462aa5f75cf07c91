"""Components of cache keys, from the ``components`` of a look-up: ``[hash] name: value`` lines.

A key has some 640 of them, 70 KB, and next to all are settings that stay what they were. So a row
is made only of what is not as it was at the process's look-up before; the first one gives them all.
"""

from __future__ import annotations

import re
from typing import cast

from traceview.parse.cutting import Record
from traceview.parse.structured.state import Compile, Reader, Row

_Parts = tuple[str, str | None, str | None]
"""Name, digest and value of a component."""

_DIGEST = re.compile(r"\[\w{1,200}")
_NAME_CHARACTERS = 300
_VALUE_CHARACTERS = 400


def components(
    reader: Reader, record: Record, compile: Compile | None, look_up: Row, lines: object
) -> None:
    """Rows of table ``cache_components`` for one look-up, whose row is ``look_up``."""
    found = _texts(lines) if isinstance(lines, list) else []
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
    changed = _changed(found, process.components.setdefault(cache, {}))
    if changed:
        names, digests, values = map(list, zip(*changed, strict=True))
        columns = {"name": names, "digest": digests, "value": values}
        process.add_block("cache_components", head, columns)


def _texts(lines: list[object]) -> list[str]:
    """Those of ``lines`` that are text: all of them, unless the log is damaged."""
    if {*map(type, lines)} == {str}:
        return cast("list[str]", lines)
    return [line for line in lines if isinstance(line, str)]


def _changed(found: list[str], last: dict[str, None]) -> list[_Parts]:
    """What is not as it was, then the names of what is gone; ``last`` becomes ``found``."""
    now = dict.fromkeys(found)
    new = {line: _parts(line) for line in now if line not in last}
    changed: list[_Parts] = [new[line] for line in found if line in new] if new else []
    present = {name for name, _, _ in changed}
    for line in [line for line in last if line not in now]:
        name = _parts(line)[0]
        del last[line]
        if name not in present:
            changed.append((name, None, None))
    last.update(now)
    return changed


def _parts(line: str) -> _Parts:
    digest, ended, named = line.partition("] ")
    name, colon, value = named.partition(": ")
    if ended and colon and _DIGEST.fullmatch(digest) and 0 < len(name) <= _NAME_CHARACTERS:
        return name, digest[1:], value[:_VALUE_CHARACTERS]
    return line[:100], "?", line[:_VALUE_CHARACTERS]
