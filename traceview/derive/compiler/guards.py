"""Table ``guard_costs``: a compile's guards, by kind and by what they read.

Torch times a whole set once, right after making it (``profile_guard_manager``), with the CPU's
caches cold: several times what a look-up costs in the profile. Of its guard managers only the root
can be evaluated from Python, so single guards are counted and not priced.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import polars as pl

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
_NAME = pl.when(pl.col("source_name") != "").then("source_name").otherwise("guard")
#: The local or global that a guard starts from: L['self'], G['torch']; ambient for neither.
_ROOT = _NAME.str.extract(r"^[\w(.]*?([LG]\['[^']{1,200}'\])").fill_null(AMBIENT)


def guard_costs(tables: Tables) -> list[Row]:
    """Rows of ``guard_costs``: per compile the set, then its kinds, then what they read."""
    guards = tables["guards"].with_columns(root=_ROOT)
    kinds = _most_first(guards, ("compile_key",), "kind")
    sources = _most_first(guards, ("compile_key",), "root")
    places = _most_first(guards, ("compile_key", "root"), "file", "line")
    rows: list[Row] = []
    for compile_ in tables["compiles"].select(_COMPILE).iter_rows(named=True):
        key, latency = compile_["compile_key"], compile_["guard_latency_us"]
        counted = sum(row["guards"] for row in kinds[key,])
        if compile_["is_forward"] is False or not (counted or compile_["guard_count"]):
            continue
        how = COUNTED if counted else ASKED
        head = {name: compile_[name] for name in _HEAD}
        whole = {
            "file": compile_["co_filename"],
            "line": compile_["co_firstlineno"],
            "guards": counted or compile_["guard_count"],
            "us": latency,
            "how": how if latency is None else TIMED,
        }
        grouped = [{"kind": row["kind"], "guards": row["guards"]} for row in kinds[key,]]
        grouped += [_source(compile_, row, places[key, row["root"]]) for row in sources[key,]]
        rows.append(head | whole)
        rows += [head | row | {"how": COUNTED} for row in grouped]
    return rows


def _most_first(
    guards: pl.DataFrame, by: tuple[str, ...], *columns: str
) -> dict[tuple[Any, ...], list[Row]]:
    """``by`` → the different values of ``columns``: how many guards have them, and one of those."""
    groups = guards.group_by(*by, *columns, maintain_order=True).agg(
        pl.first("guard"), guards=pl.len()
    )
    found: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in groups.sort("guards", descending=True, maintain_order=True).iter_rows(named=True):
        found[tuple(row[name] for name in by)].append(row)
    return found


def _source(compile_: Row, source: Row, places: list[Row]) -> Row:
    """What the guards that start from one local or global are, with the line of most of them."""
    name, times = source["root"], source["guards"]
    told = Counter[tuple[str, int]]()
    for row in places:
        if place := _place(compile_, row["file"], row["line"]):
            told[place] += row["guards"]
    file, line = told.most_common(1)[0][0] if told else (None, None)
    what = source["guard"] if times == 1 else f"all that start from {name}"
    return {"source_name": name, "guards": times, "file": file, "line": line, "guard": what}


def _place(compile_: Row, file: str | None, line: int | None) -> tuple[str, int] | None:
    """The user's line, where torch's shortened file name is the end of a name that is known."""
    if not file or line is None:
        return None
    known = (compile_["user_file"], compile_["co_filename"])
    whole = next((name for name in known if name and name.endswith(file)), None)
    return None if whole is None else (whole, line)
