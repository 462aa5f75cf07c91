"""Components of cache keys, from the ``components`` of a look-up: ``[hash] name: value`` lines.

A key has some 640 of them, 70 KB, and next to all are settings that stay what they were. So a row
is made only of what is not as it was at the process's look-up before; the first one gives them all.
"""

from __future__ import annotations

import re

from traceview.parse.cutting import Record
from traceview.parse.structured.state import Compile, Reader, Row

_LINE = re.compile(r"\[(?P<digest>\w{1,200})\] (?P<name>.{1,300}?): (?P<value>.*)", re.DOTALL)
_VALUE_CHARACTERS = 400


def components(
    reader: Reader, record: Record, compile: Compile | None, look_up: Row, lines: object
) -> None:
    """Rows of table ``cache_components`` for one look-up, whose row is ``look_up``."""
    found = [line for line in lines if isinstance(line, str)] if isinstance(lines, list) else []
    if not found:
        return
    process, cache = reader.process, look_up["cache"]
    last = process.components.setdefault(cache, {})
    now = dict.fromkeys(found)
    head = {
        "pid": process.pid,
        "cache": cache,
        "lookup": process.look_ups[cache],
        "event": look_up["event"],
        "key": look_up["key"],
    }
    process.look_ups[cache] += 1
    new = now.keys() - last.keys()
    changed = [_parts(line) for line in found if line in new] if new else []
    present = {row["name"] for row in changed}
    gone = last.keys() - now.keys()
    for line in [line for line in last if line in gone] if gone else ():
        name = _parts(line)["name"]
        del last[line]
        if name not in present:
            changed.append({"name": name})
    last.update(now)
    for row in changed:
        process.add("cache_components", record, compile, head | row)


def _parts(line: str) -> Row:
    match = _LINE.match(line)
    if match is None:
        return {"name": line[:100], "digest": "?", "value": line[:_VALUE_CHARACTERS]}
    return {
        "name": match["name"],
        "digest": match["digest"],
        "value": match["value"][:_VALUE_CHARACTERS],
    }
