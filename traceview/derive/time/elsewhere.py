"""Where a host did nothing that was recorded while another rank compiled.

Most collectives show no event while they wait, so a long stretch of nothing is Python of the
script's own, or a wait for a rank that compiles. Where a stretch lies in another rank's compile,
it is called by that: the script's own Python it cannot be said to be.
"""

from __future__ import annotations

import polars as pl

from traceview.derive import causes
from traceview.derive.time.spans import covered_before, union
from traceview.derive.windows import Window
from traceview.tables import Tables

#: Shorter stretches are no wait for a compile; of a longer one, compiles must fill this part.
_LEAST_NS, _FILLS = 10_000_000, 0.5
_CAUSES = {
    causes.PYTHON: causes.HOST_COMPILE_ELSEWHERE,
    causes.OTHER_PYTHON: causes.COMPILE_ELSEWHERE,
}


def compiles_elsewhere(tables: Tables, window: Window) -> pl.DataFrame:
    """``start`` and ``end`` of other ranks' compiles, on the window's clock; disjoint, in order.

    Nothing where the window's trace does not tell its Unix time, or is one of several.
    """
    told = window.own(tables["traces"])["zero_ns"]
    zero = told[0] if told.len() == 1 and window.rank is not None else None
    compiles = tables["compiles"].filter(pl.col("pass") == window.pass_name)
    if zero is None:
        compiles = compiles.clear()
    others = compiles.filter(pl.col("rank") != pl.lit(window.rank, dtype=pl.Int32))
    start = (pl.col("started_us") * 1000).cast(pl.Int64) - pl.lit(zero, dtype=pl.Int64)
    length = (pl.col("duration_us") * 1000).cast(pl.Int64)
    return union(others.select(start=start, end=start + length).drop_nulls())


def named(line: pl.DataFrame, compiles: pl.DataFrame) -> pl.DataFrame:
    """``line`` with another cause where Python lay in ``compiles``."""
    if compiles.is_empty():
        return line
    covered = covered_before(compiles, line["end"]) - covered_before(compiles, line["start"])
    length = pl.col("end") - pl.col("start")
    waits = (length >= _LEAST_NS) & (pl.lit(covered) >= _FILLS * length)
    cause = pl.col("cause").replace(_CAUSES)
    return line.with_columns(cause=pl.when(waits).then(cause).otherwise("cause"))
