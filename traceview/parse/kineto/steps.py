"""Steps of a window: our own marks, else the profiler's, else none."""

from __future__ import annotations

import polars as pl

from traceview.parse.kineto.reader import Events
from traceview.torchtext import marks


def step_marks(host: Events) -> pl.DataFrame:
    """``start_ns`` and ``end_ns`` of the marked steps, in order of start: row n is step n."""
    whats, rows = host.whats, host.rows
    annotation = whats["kind"] == "user_annotation"
    ours = annotation & whats["name"].str.contains(marks.OUR_STEP)
    others = annotation & whats["name"].str.contains(marks.PROFILER_STEP)
    found = rows.filter((ours if ours.any() else others).fill_null(False).gather(rows["what"]))
    return found.sort("start_ns").select(
        "start_ns", (pl.col("start_ns") + pl.col("duration_ns")).alias("end_ns")
    )


def steps_of(times: pl.Series, marks: pl.DataFrame) -> pl.Series:
    """``step`` in which each of ``times`` lies, from 0; null outside of every step."""
    begun = marks["start_ns"].search_sorted(times, side="right").cast(pl.Int32)
    found = pl.DataFrame({"time": times, "step": begun - 1}).with_columns(
        pl.when(pl.col("step") >= 0).then("step").alias("step")
    )
    ends = pl.lit(marks["end_ns"]).gather(pl.col("step"))
    return found.select(pl.when(pl.col("time") < ends).then("step").alias("step"))["step"]
