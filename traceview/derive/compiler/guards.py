"""Table ``guard_costs``: a compile's guards, by kind and by what they read.

Torch times a whole set once, right after making it (``profile_guard_manager``), with the CPU's
caches cold: several times what a look-up costs in the profile. Of its guard managers only the root
can be evaluated from Python, so single guards are counted and not priced.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import Any

from traceview.tables import Tables

Row = dict[str, Any]
TIMED = "torch timed the set once, when it was made: colder than a look-up"
COUNTED = "counted in torch's tree of guards; single guards are not timed"
ASKED = "guards asked for while tracing; torch's tree of them is not in the log"
AMBIENT = "ambient state"

_HEAD = ("pass", "rank", "compile_key", "compile_id", "co_name")
_COMPILE = (
    *_HEAD, "co_filename", "co_firstlineno", "user_file", "is_forward", "guard_count",
    "guard_latency_us",
)  # fmt: skip
_GUARD = ("compile_key", "kind", "source_name", "guard", "file", "line")

_ROOT = re.compile(r"^[\w(.]*?(?P<root>[LG]\['[^']{1,200}'\])")


def guard_costs(tables: Tables) -> list[Row]:
    """Rows of ``guard_costs``: per compile the set, then its kinds, then what they read."""
    by_compile: dict[str, list[Row]] = defaultdict(list)
    for row in tables["guards"].select(_GUARD).iter_rows(named=True):
        by_compile[row["compile_key"]].append(row)
    rows: list[Row] = []
    for compile_ in tables["compiles"].select(_COMPILE).iter_rows(named=True):
        guards = by_compile.get(compile_["compile_key"], [])
        if compile_["is_forward"] is False or not (guards or compile_["guard_count"]):
            continue
        latency = compile_["guard_latency_us"]
        counted = COUNTED if guards else ASKED
        whole = {
            "file": compile_["co_filename"],
            "line": compile_["co_firstlineno"],
            "guards": len(guards) or compile_["guard_count"],
            "us": latency,
            "how": counted if latency is None else TIMED,
        }
        rows.append(_head(compile_) | whole)
        rows += _grouped(compile_, guards)
    return rows


def _grouped(compile_: Row, guards: list[Row]) -> list[Row]:
    kinds = Counter(guard["kind"] for guard in guards)
    sources: dict[str, list[Row]] = defaultdict(list)
    for guard in guards:
        sources[root_of(guard)].append(guard)
    rows: list[Row] = [{"kind": kind, "guards": times} for kind, times in kinds.most_common()]
    for source, mine in sorted(sources.items(), key=lambda item: -len(item[1])):
        places = Counter(place for guard in mine if (place := _place(compile_, guard)))
        file, line = places.most_common(1)[0][0] if places else (None, None)
        what = mine[0]["guard"] if len(mine) == 1 else f"all that start from {source}"
        rows.append(
            {"source_name": source, "guards": len(mine), "file": file, "line": line, "guard": what}
        )
    return [_head(compile_) | row | {"how": COUNTED} for row in rows]


def root_of(guard: Row) -> str:
    """The local or global that a guard starts from: L['self'], G['torch']; ambient for neither."""
    match = _ROOT.match(guard["source_name"] or guard["guard"] or "")
    return match["root"] if match else AMBIENT


def _place(compile_: Row, guard: Row) -> tuple[str, int] | None:
    """The user's line, where torch's shortened file name is the end of a name that is known."""
    file, line = guard["file"], guard["line"]
    if not file or line is None:
        return None
    known = (compile_["user_file"], compile_["co_filename"])
    whole = next((name for name in known if name and name.endswith(file)), None)
    return None if whole is None else (whole, line)


def _head(compile_: Row) -> Row:
    return {name: compile_[name] for name in _HEAD}
