"""Generated kernels that are slower than what they replaced: table ``slow_fusions``.

Match groups whose generated kernels lost time. Operators that compiled code calls in such a group,
as those for which there is no generated code, count as what they are in eager. What the slowest
kernel's source shows is in the columns: how much of it is done one element at a time, what it looks
up and for which operator, which functions it calls and in which precision; and what ``slow_loops``
and ``partial_writes`` explain of the loss.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import polars as pl

from traceview.derive.effects.groups import LIBRARY_CATEGORIES
from traceview.derive.effects.parts import FUSION
from traceview.derive.facts.rows import ran_generated
from traceview.derive.kernel_groups import Origins
from traceview.tables import Tables, from_rows, grouped
from traceview.torchtext.cpp_work import work_of
from traceview.torchtext.kernel_source import triton_calls

Row = dict[str, Any]
#: Operators that read at places which another tensor holds.
READERS = (
    *("index", "index_select", "embedding", "gather", "take", "take_along_dim"),
    *("grid_sampler_2d", "grid_sampler_3d"),
)


def slow_fusions(tables: Tables) -> pl.DataFrame | None:
    """Table ``slow_fusions``; None where no step was profiled."""
    if (ran := ran_generated(tables)) is None:
        return None
    origins = Origins(tables)
    where = ("pass", "rank", "group_id")
    members = grouped(tables["matched_kernels"].iter_rows(named=True), *where)
    generated = grouped(ran.iter_rows(named=True), *where)
    explained: dict[tuple[Any, ...], float] = defaultdict(float)
    for name in ("slow_loops", "partial_writes"):
        for row in tables[name].iter_rows(named=True):
            explained[tuple(row[column] for column in where)] += row["slower_ms"] or 0.0
    result, times = [], fusion_times(tables)
    called = fallback_times(tables, members)
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
        # Operators that compiled code calls do as much as those of eager that take as long.
        called_ms = min(after, called[key])
        if called_ms >= before:
            continue  # what the generated kernels replaced is not known
        before, after = before - called_ms, after - called_ms
        spent: dict[str, float] = defaultdict(float)
        for row in eager:
            spent[f"{row['file']}:{row['line']}"] += row["ms"] or 0.0
        lines = origin.get("user_lines") or []
        shown = _shown(origin.get("source_code") or "")
        reader = reader_at(eager, lines, READERS) if shown.get("looked_up") else None
        result.append(
            {
                **dict(zip(where, key, strict=True)),
                **{c: origin.get(c) for c in ("compile_key", "raw_file", "raw_line")},
                "compile_id": slowest["compile_id"],
                "kernel_name": slowest["name"],
                "kernels": len({row["name"] for row in kernels}),
                "operators": sum(row["count"] or 0.0 for row in eager),
                "user_lines": sorted(lines, key=lambda line: -spent[line]),
                "operator": _leading(eager),
                "eager_ms": before,
                "compiled_ms": after,
                "slower_ms": after - before,
                "effect_ms": effect[key[:2]],
                "explained_ms": min(after - before, explained[key]),
                "clock": slowest["clock"],
                **shown,
                "reader": reader and reader[0],
                "reader_line": reader and reader[1],
            }
        )
    return from_rows("slow_fusions", result)


def fusion_times(
    tables: Tables, effect: str = FUSION
) -> dict[tuple[Any, ...], tuple[float, float]]:
    """Pass, rank and match group → what fusion replaced and by what, ms of the steps as timed.

    Or what the kernels of another ``effect`` did. No kernel takes more than the timed step, though
    the profiled one may have been a slower one.
    """
    steps = {
        (row["pass"], row["rank"]): row["compiled_ms"]
        for row in tables["speedups"].iter_rows(named=True)
    }
    found = {}
    parts = tables["waterfall_rows"].filter(effect=effect).drop_nulls("group_id")
    for part in parts.iter_rows(named=True):
        key = (part["pass"], part["rank"], part["group_id"])
        after = part["compiled_ms"] or 0.0
        times = part["eager_ms"] or 0.0, min(after, steps.get(key[:2]) or after)
        found[key] = times
    return found


def reader_at(
    eager: Sequence[Row], known: Collection[str], operators: Collection[str]
) -> tuple[str, str] | None:
    """The slowest of ``operators`` at one of the lines ``known``, and its line."""
    found = [
        (row["ms"] or 0.0, word, line)
        for row in eager
        if (word := (row["cpu_op"] or row["name"]).rpartition("::")[2]) in operators
        and (line := f"{row['file']}:{row['line']}") in known
    ]
    return max(found)[1:] if found else None


def _leading(eager: Sequence[Row]) -> str | None:
    """The operator that takes at least half of the time, those of libraries apart."""
    spent: dict[str, float] = defaultdict(float)
    for row in eager:
        if row["category"] not in LIBRARY_CATEGORIES:
            spent[(row["cpu_op"] or row["name"]).rpartition("::")[2]] += row["ms"] or 0.0
    longest = max(spent, key=lambda name: spent[name], default=None)
    return longest if longest and 2 * spent[longest] >= sum(spent.values()) else None


def fallback_times(
    tables: Tables, members: Mapping[tuple[Any, ...], Sequence[Row]]
) -> dict[tuple[Any, ...], float]:
    """Pass, rank and match group → ms, as timed, of operators that compiled code calls there.

    Those for which there is no generated code, and the copies that they make. Libraries' are left
    out, which no generated kernel stands for. ``members``: executions of each group.
    """
    timed: dict[tuple[Any, ...], float] = defaultdict(float)
    for row in tables["waterfall_rows"].iter_rows(named=True):
        timed[row["pass"], row["rank"], row["group_id"]] += row["compiled_ms"] or 0.0
    found = {}
    for key, rows in members.items():
        whole = called = 0.0
        for row in rows:
            if row["stance"] == "compiled" and row["ms"]:
                whole += row["ms"]
                category = row["category"] or ""
                written = category.startswith("generated_") or category in LIBRARY_CATEGORIES
                called += 0.0 if written else row["ms"]
        found[key] = timed[key] * called / whole if whole else 0.0
    return found


def _shown(source: str) -> Row:
    """What the source of a kernel shows, as columns of the table."""
    if work := work_of(source):
        return {
            "functions": sorted(work.functions, key=lambda name: -work.functions[name]),
            "single": work.single / work.instructions,
            "looked_up": work.looked_up,
            "looking_up": work.looking_up / work.instructions,
        }
    if called := triton_calls(source):
        return {
            "functions": list(called.functions),
            "calls": sum(called.functions.values()),
            "operations": called.operations,
            "float64": called.float64,
        }
    return {}
