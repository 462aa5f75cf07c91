"""Code that torch.compile was given and that runs in eager all the same.

Of compiled steps, in the profiler window that knows lines. Compiled code runs no line.
"""

from __future__ import annotations

import polars as pl

from traceview.derive.facts.rows import Row, first_rank, frame, rows
from traceview.tables import Tables
from traceview.torchtext import marks


def uncalled_ms(tables: Tables) -> dict[int, float]:
    """``region_id`` of each callable that is not called → ``ms_of`` its code, where it ran."""
    uncalled = (row for row in first_rank(rows(tables, "regions")) if not row["calls"])
    return {row["region_id"]: ms for row in uncalled if (ms := ms_of(tables, row))}


def ms_of(tables: Tables, region: Row) -> float | None:
    """Host milliseconds of a step in the lines of the code, and what they call; None: not known."""
    ops = frame(tables, "line_ops", stance="compiled")
    steps = ops.filter(pl.col("name").str.contains(marks.OUR_STEP)).height
    if not steps or not region["target_file"] or region["target_last_line"] is None:
        return None
    at = pl.col("line").is_between(region["target_line"], region["target_last_line"])
    mine = ops.filter((pl.col("kind") == "line") & (pl.col("file") == region["target_file"]) & at)
    spans = dict(mine.select("op_id", "duration_ns").iter_rows())
    parents = dict(ops.select("op_id", "parent_id").iter_rows())
    own = 0
    for op, ns in spans.items():
        above = parents.get(op)
        while above is not None and above not in spans:
            above = parents.get(above)
        if above is None:  # else it lies in that one's time
            own += ns
    return own / 1e6 / steps
