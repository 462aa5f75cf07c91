"""How long a device waited inside its collectives for other ranks.

A kernel of a collective runs from its own rank's launch until all ranks have taken part. The rank
that comes last waits for nobody, so what the same collective takes longer on another is a wait. The
profiler makes all hosts slower, and with them these waits: such a kernel is not as long without it.
"""

from __future__ import annotations

import polars as pl

from traceview.derive.windows import Window
from traceview.tables import Tables

#: The same collective on two ranks: the n-th of a name in the same step.
_SAME = ("step", "name", "n")


def waits_ns(tables: Tables, window: Window) -> float:
    """ns of the window's collectives beyond the shortest of any rank; 0 without other ranks."""
    mine = _collectives(window.main_kernels)
    rank = pl.lit(window.rank, dtype=pl.Int32)
    others = tables["kernels"].filter(
        pl.col("pass").eq(window.pass_name), pl.col("stance").eq(window.stance),
        pl.col("rank").ne_missing(rank),
    )  # fmt: skip
    if mine.is_empty() or others.is_empty():
        return 0.0
    shortest = _collectives(others).group_by(_SAME).agg(least=pl.col("duration_ns").min())
    waits = mine.join(shortest, on=_SAME).select(pl.col("duration_ns") - pl.col("least"))
    return float(waits["duration_ns"].clip(lower_bound=0).sum())


def _collectives(kernels: pl.DataFrame) -> pl.DataFrame:
    """Kernels that communicate, with ``n``: the how-many-th of its name in its rank's step."""
    mine = kernels.filter(category="communication").drop_nulls("step").sort("start_ns")
    return mine.with_columns(n=pl.int_range(pl.len()).over("rank", "step", "name"))
