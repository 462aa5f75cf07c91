"""Code that torch.compile was given and that runs in eager all the same.

Of compiled steps, in the profiler window that knows lines. Compiled code runs no line.
"""

from __future__ import annotations

import polars as pl

from traceview.derive.facts.rows import Row, first_rank, frame, rows
from traceview.derive.origins.tree import nearest, parents
from traceview.tables import Tables
from traceview.torchtext import marks


def uncalled_ms(tables: Tables) -> dict[int, float]:
    """``region_id`` of each callable that is not called → ``ms_of`` its code, where it ran."""
    uncalled = (row for row in first_rank(rows(tables, "regions")) if not row["calls"])
    return {row["region_id"]: ms for row in uncalled if (ms := ms_of(tables, row))}


def ms_of(tables: Tables, region: Row) -> float | None:
    """Host milliseconds of a step in the lines of the code, and what they call; None: not known."""
    of_rank = pl.col("rank").eq_missing(pl.lit(region["rank"]))
    ops = frame(tables, "line_ops", stance="compiled").filter(of_rank)
    steps = ops.filter(pl.col("name").str.contains(marks.OUR_STEP)).height
    if not steps or not region["target_file"] or region["target_last_line"] is None:
        return None
    at = pl.col("line").is_between(region["target_line"], region["target_last_line"])
    is_line = (pl.col("kind") == "line") & (pl.col("file") == region["target_file"]) & at
    mine, above = ops.select(is_line.fill_null(False)).to_series(), parents(ops)
    outermost = mine & nearest(mine, above)[above].is_null()  # others lie in that one's time
    return int(ops.filter(outermost)["duration_ns"].sum()) / 1e6 / steps
