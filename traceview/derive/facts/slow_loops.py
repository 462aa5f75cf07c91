"""Table ``slow_loops``: work that makes generated C++ kernels slow, and its cost.

Either a kernel does it one element at a time, or more than once for the same value, or it divides
by symbolic sizes to find each place.

The cost is what the kernel's match group takes longer than the eager operators that it replaced,
the part of the waterfall that is called fusion: a kernel in scalar code that is still faster than
what it replaced costs nothing.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

import polars as pl

from traceview.derive.effects.parts import FUSION
from traceview.derive.kernel_groups import Origins
from traceview.derive.windows import GENERATED
from traceview.tables import Tables, from_rows
from traceview.torchtext.cpp_loops import SYMBOLIC_INDEX, divides_by_sizes, one_at_a_time
from traceview.torchtext.cpp_values import repeated
from traceview.torchtext.output_code import PROFILED_CPP

Row = dict[str, Any]
#: The slowest of these functions takes this long for one element (a Bessel function: 43 ns on a
#: server of 2023, a tanh 12): where there is more time for each, something else takes it.
_MOST_NS = 50.0
RECOMPUTED = "recomputed"
#: A function takes about as long for one element as vector code takes for this many.
_VECTOR = 8


def slow_loops(tables: Tables) -> pl.DataFrame | None:
    """Table ``slow_loops``; None where no step was profiled."""
    if tables["matched_kernels"].is_empty():
        return None
    kernels = tables["matched_kernels"].filter(GENERATED, stance="compiled", clock="host")
    origins = Origins(tables)
    known: dict[str, Row | None] = {}
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for kernel in kernels.iter_rows(named=True):
        name = re.sub(PROFILED_CPP, r"\1", kernel["name"])
        origin = origins.of(kernel["pass"], name, kernel["graph_key"], kernel["compile_id"])
        if origin is None or not (text := origin["source_code"]):
            continue
        if text not in known:
            known[text] = _main_reason(text)
        if (fact := known[text]) is None:
            continue
        runs, ms, times = kernel["count"] or 0.0, kernel["ms"] or 0.0, fact["evaluations"]
        if times is not None and runs * times * _MOST_NS < ms * 1e6:
            continue
        groups[kernel["pass"], kernel["rank"], kernel["group_id"]].append(
            {
                **{key: origin[key] for key in ("compile_key", "compile_id", "raw_file")},
                "raw_line": origin["raw_line"],
                "kernel_name": name,
                **fact,
                "user_lines": origin["user_lines"],
                "count": runs,
                "profiled_ms": ms,
            }
        )
    result = []
    for (pass_name, rank, group_id), rows in groups.items():
        head = {"pass": pass_name, "rank": rank}
        slower, timed = _of_group(tables, pass_name, rank, group_id)
        own = sum(row["profiled_ms"] for row in rows)
        whole = _profiled(tables, pass_name, rank, group_id) or own
        # As timed; of what the group loses, no more than these kernels take.
        scale = timed / whole if timed is not None and whole else None
        for row in rows:
            ms = None if scale is None else row["profiled_ms"] * scale
            slower_ms = None
            if slower is not None and ms is not None and own and scale:
                slower_ms = min(slower, own * scale) * row["profiled_ms"] / own
                if row["why"] == RECOMPUTED:  # what is computed once stays
                    slower_ms = min(slower_ms, ms * (1 - row["distinct"] / row["evaluations"]))
            result.append({**head, "group_id": group_id, **row, "ms": ms, "slower_ms": slower_ms})
    return from_rows("slow_loops", result)


def _main_reason(source: str) -> Row | None:
    """What takes most of a kernel that need not: of one reason, as columns of the table."""
    one = next(iter(one_at_a_time(source)), None)
    more = repeated(source)
    scalar = _VECTOR * (one.evaluations or 0) if one else 0
    wasted = sum(
        (fact.evaluations - fact.distinct) * (_VECTOR if fact.scalar else 1) for fact in more
    )
    if more and wasted >= scalar:
        return {
            "why": RECOMPUTED,
            "functions": list(dict.fromkeys(fact.function for fact in more)),
            "evaluations": sum(fact.evaluations for fact in more),
            "distinct": sum(fact.distinct for fact in more),
        }
    if one is None:
        if not divides_by_sizes(source):
            return None
        return {"why": SYMBOLIC_INDEX, "functions": ["division"], "evaluations": None}
    return {
        "why": one.why,
        "functions": list(one.functions),
        "evaluations": one.evaluations,
        "length": one.length,
    }


def _mine(pass_name: str, rank: int | None, group_id: int | None) -> pl.Expr:
    same_rank = pl.col("rank").eq_missing(pl.lit(rank, dtype=pl.Int32))
    same_group = pl.col("group_id").eq_missing(pl.lit(group_id, dtype=pl.Int32))
    return pl.col("pass").eq(pass_name) & same_rank & same_group


def _of_group(
    tables: Tables, pass_name: str, rank: int | None, group_id: int | None
) -> tuple[float | None, float | None]:
    """What fusion made slower in a group, and what it takes compiled, both as timed."""
    mine = tables["waterfall_rows"].filter(_mine(pass_name, rank, group_id), effect=FUSION)
    if mine.is_empty() or group_id is None:
        return None, None
    return max(0.0, float(mine["ms"].sum())), float(mine["compiled_ms"].sum())


def _profiled(tables: Tables, pass_name: str, rank: int | None, group_id: int | None) -> float:
    """Generated kernels of a group as profiled, ms a step."""
    matched = tables["matched_kernels"]
    mine = matched.filter(_mine(pass_name, rank, group_id), GENERATED, stance="compiled")
    return float(mine["ms"].sum())
