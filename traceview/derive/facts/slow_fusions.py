"""Table ``slow_fusions``: match groups whose generated kernels are slower than what they replaced.

What the slowest kernel's source shows is in the columns: how much of it is done one element at a
time, what it looks up, which functions it calls and in which precision. ``slow_loops`` has the
reasons that explain a loss; what they explain of it is here as well.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import polars as pl

from traceview.derive.facts.slow_loops import fusion_times
from traceview.derive.kernel_groups import Origins
from traceview.derive.windows import GENERATED
from traceview.tables import Tables, from_rows, grouped
from traceview.torchtext.cpp_work import work_of
from traceview.torchtext.kernel_source import triton_calls

Row = dict[str, Any]


def slow_fusions(tables: Tables) -> pl.DataFrame | None:
    """Table ``slow_fusions``; None where no step was profiled."""
    if tables["matched_kernels"].is_empty():
        return None
    origins = Origins(tables)
    where = ("pass", "rank", "group_id")
    members = grouped(tables["matched_kernels"].iter_rows(named=True), *where)
    generated = grouped(
        tables["matched_kernels"].filter(GENERATED, stance="compiled").iter_rows(named=True), *where
    )
    explained: dict[tuple[Any, ...], float] = defaultdict(float)
    for name in ("slow_loops", "partial_writes"):
        for row in tables[name].iter_rows(named=True):
            explained[tuple(row[column] for column in where)] += row["slower_ms"] or 0.0
    result, times = [], fusion_times(tables)
    effect: dict[tuple[Any, ...], float] = defaultdict(float)
    for key, (before, after) in times.items():
        effect[key[:2]] += after - before
    for key, (before, after) in times.items():
        kernels = sorted(generated.get(key, ()), key=lambda row: -(row["ms"] or 0.0))
        if not kernels or after <= before:
            continue
        slowest = kernels[0]
        origin = origins.of_kernel(slowest) or {}
        eager = [row for row in members[key] if row["stance"] == "eager"]
        spent: dict[str, float] = defaultdict(float)
        for row in eager:
            spent[f"{row['file']}:{row['line']}"] += row["ms"] or 0.0
        lines = origin.get("user_lines") or []
        result.append(
            {
                **dict(zip(where, key, strict=True)),
                **{c: origin.get(c) for c in ("compile_key", "raw_file", "raw_line")},
                "compile_id": slowest["compile_id"],
                "kernel_name": slowest["name"],
                "kernels": len({row["name"] for row in kernels}),
                "operators": sum(row["count"] or 0.0 for row in eager),
                "user_lines": sorted(lines, key=lambda line: -spent[line]),
                "eager_ms": before,
                "compiled_ms": after,
                "slower_ms": after - before,
                "effect_ms": effect[key[:2]],
                "explained_ms": min(after - before, explained[key]),
                "clock": slowest["clock"],
                **_shown(origin.get("source_code") or ""),
            }
        )
    return from_rows("slow_fusions", result)


def _shown(source: str) -> Row:
    """What the source of a kernel shows, as columns of the table."""
    if work := work_of(source):
        return {
            "functions": sorted(work.functions, key=lambda name: -work.functions[name]),
            "single": work.single / work.instructions,
            "looked_up": work.looked_up,
        }
    if called := triton_calls(source):
        return {
            "functions": list(called.functions),
            "calls": sum(called.functions.values()),
            "operations": called.operations,
            "float64": called.float64,
        }
    return {}
