"""Table ``guard_costs``: a compile's guards, by kind and by what they read.

The collector times the set, and by what they read the guards that take a good part of that (table
``guard_timings``); the others are counted. Torch times a whole set once, right after making it
(``profile_guard_manager``), with the CPU's caches cold: several times what a look-up costs in the
profile.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import Any

import polars as pl

from traceview.compile_id import process_and_id
from traceview.tables import Tables, grouped

Row = dict[str, Any]
TIMED = "torch timed the set once, when it was made: colder than a look-up"
EVALUATED = "all of them evaluated, median of {}"
APART = "timed with and without them, median of {}"
COUNTED = "counted, not timed"
ASKED = "guards asked for while tracing; torch's tree of them is not in the log"
AMBIENT = "ambient state"

_HEAD = ("pass", "rank", "compile_key", "compile_id", "co_name")
_CODE = ("co_filename", "co_firstlineno", "user_file")
_COMPILE = (*_HEAD, *_CODE, "is_forward", "guard_count", "guard_latency_us")
_NAME = pl.when(pl.col("source_name") != "").then("source_name").otherwise("guard")
#: The local or global that a guard starts from: L['self'], G['torch']; ambient for neither.
_ROOT = r"^[\w(.]*?([LG]\['[^']{1,200}'\])"


def guard_costs(tables: Tables) -> list[Row]:
    """Rows of ``guard_costs``: per compile the set, then its kinds, then what they read."""
    guards = tables["guards"].with_columns(root=_NAME.str.extract(_ROOT).fill_null(AMBIENT))
    kinds = _most_first(guards, ("compile_key",), "kind")
    sources = _most_first(guards, ("compile_key",), "root")
    places = _most_first(guards, ("compile_key", "root"), "file", "line")
    timings = _timings(tables)
    rows: list[Row] = []
    for compile_ in tables["compiles"].select(_COMPILE).iter_rows(named=True):
        key = compile_["compile_key"]
        counted = sum(row["guards"] for row in kinds[key])
        if compile_["is_forward"] is False or not (counted or compile_["guard_count"]):
            continue
        timed = timings[key]
        # The set: evaluated by the collector, else timed by torch, else only counted.
        us, how = compile_["guard_latency_us"], COUNTED if counted else ASKED
        if timed:
            us, how = timed[0]["us"], EVALUATED.format(timed[0]["evaluations"])
        elif us is not None:
            how = TIMED
        head = {name: compile_[name] for name in _HEAD}
        whole = {
            "file": compile_["co_filename"],
            "line": compile_["co_firstlineno"],
            "guards": counted or compile_["guard_count"],
        }
        rows.append({**head, **whole, "us": us, "how": how})
        parts = [{"kind": row["kind"], "guards": row["guards"]} for row in kinds[key]]
        branches = _branches(compile_, timed[1:], guards)
        parts += branches
        timed_of = Counter[str]()
        for branch in branches:
            root = re.match(_ROOT, branch["source_name"])
            timed_of[root[1] if root else AMBIENT] += branch["guards"]
        for source in sources[key]:
            # What starts from one local or global and is in none of its branches that were timed.
            name, guard = source["root"], source["guard"]
            if (left := source["guards"] - timed_of[name]) > 0:
                if source["guards"] > 1:
                    guard = _starting(name, whole=left == source["guards"])
                found = places[key, name]
                parts.append(_of_source(compile_, name, left, found) | {"guard": guard})
        rows += [{**head, "how": COUNTED, **row} for row in parts]
    return rows


def _timings(tables: Tables) -> dict[str, list[Row]]:
    """Compile key → its rows of ``guard_timings``, the whole set first.

    None where torch, after a reset, gave the same compile id to another compile.
    """
    found: dict[str, list[Row]] = defaultdict(list)
    timings = tables["guard_timings"]
    if timings.is_empty():
        return found
    known = process_and_id(tables["compiles"]["compile_key"].unique())
    keys = {mine: key for key, mine in known.items()}
    for row in timings.iter_rows(named=True):
        key = keys.get((row["pid"], row["compile_id"]))
        if key is None:
            continue
        if row["source_name"] is None:
            found[key] = [row]
        elif found[key]:
            found[key].append(row)
    return found


def _most_first(guards: pl.DataFrame, by: tuple[str, ...], *columns: str) -> dict[Any, list[Row]]:
    """``by`` → the different values of ``columns``: how many guards have them, and one of those."""
    groups = guards.group_by(*by, *columns, maintain_order=True).agg(
        pl.first("guard"), guards=pl.len()
    )
    ordered = groups.sort("guards", descending=True, maintain_order=True)
    return grouped(ordered.iter_rows(named=True), *by)


def _branches(compile_: Row, timed: list[Row], guards: pl.DataFrame) -> list[Row]:
    """What was timed by what it reads, with the line of most of these guards."""
    mine = guards.filter(compile_key=compile_["compile_key"]) if timed else guards.clear()
    rows = []
    for row in timed:
        name = row["source_name"]
        below = mine.filter(pl.col("source_name").str.contains(name, literal=True))
        places = below.group_by("file", "line", maintain_order=True).agg(guards=pl.len())
        inner = any(name in other["source_name"] for other in timed if other is not row)
        described = {
            "guard": _starting(name, whole=not inner),
            "us": row["us"],
            "how": APART.format(row["evaluations"]),
        }
        rows.append(_of_source(compile_, name, row["guards"] or 0, places.to_dicts()) | described)
    return rows


def _starting(name: str, *, whole: bool) -> str:
    return f"{'all' if whole else 'others'} that start from {name}"


def _of_source(compile_: Row, name: str, guards: int, places: list[Row]) -> Row:
    """What reads one source, with the line of most of these guards."""
    known = [file for file in (compile_["user_file"], compile_["co_filename"]) if file]
    counts = Counter[tuple[str, int]]()
    for row in places:
        # Torch shortens file names: the user's line is in the one that is known and ends so.
        shortened, number = row["file"], row["line"]
        whole = next((file for file in known if shortened and file.endswith(shortened)), None)
        if whole is not None and number is not None:
            counts[whole, number] += row["guards"]
    file, line = counts.most_common(1)[0][0] if counts else (None, None)
    return {"source_name": name, "guards": guards, "file": file, "line": line}
