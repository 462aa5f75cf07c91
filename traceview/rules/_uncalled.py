"""Callables that were compiled and are not called, while their code runs in eager all the same."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from traceview.rules._rows import Row, first_rank, frame, rows
from traceview.tables import Tables

_STEP = "traceview step "


def eager_ms(tables: Tables) -> Mapping[int, float]:
    """``region_id`` of each such callable → host milliseconds of a step in lines of its code.

    Of compiled steps, in the profiler window that knows lines. Compiled code runs no line.
    """
    return tables.once(_eager_ms)


def _eager_ms(tables: Tables) -> dict[int, float]:
    ops = frame(tables, "line_ops", stance="compiled")
    steps = ops.filter(pl.col("name").str.starts_with(_STEP)).height
    uncalled = [
        row
        for row in first_rank(rows(tables, "regions"))
        if not row["calls"] and row["target_file"] and row["target_last_line"]
    ]
    if not steps or not uncalled:
        return {}
    parents = dict(ops.select("op_id", "parent_id").iter_rows())
    found = {row["region_id"]: _outermost_ns(ops, parents, row) / 1e6 / steps for row in uncalled}
    return {region: ms for region, ms in found.items() if ms}


def _outermost_ns(ops: pl.DataFrame, parents: Mapping[int, int | None], region: Row) -> int:
    """Time of the region's own lines, with all that they call; none counts twice."""
    first, last = region["target_line"], region["target_last_line"]
    mine = ops.filter(
        (pl.col("kind") == "line")
        & (pl.col("file") == region["target_file"])
        & pl.col("line").is_between(first, last)
    )
    spans = dict(mine.select("op_id", "duration_ns").iter_rows())
    return sum(ns for op, ns in spans.items() if not _lies_in(spans, parents, op))


def _lies_in(spans: Mapping[int, int], parents: Mapping[int, int | None], op: int) -> bool:
    above = parents.get(op)
    while above is not None and above not in spans:
        above = parents.get(above)
    return above is not None
