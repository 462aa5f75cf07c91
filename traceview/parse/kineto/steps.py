"""Steps of a window: our own marks, else the profiler's, else none."""

from __future__ import annotations

import polars as pl

from traceview.parse.kineto.nesting import OTHER_STEP, OUR_STEP


def step_marks(host: pl.DataFrame) -> pl.DataFrame:
    """``step`` (from 0 by start), ``step_start_ns``, ``step_end_ns`` of the marked steps."""
    annotations = host.filter(pl.col("kind") == "user_annotation")
    ours = annotations.filter(pl.col("name").str.contains(OUR_STEP.pattern))
    marks = (
        ours if ours.height else annotations.filter(pl.col("name").str.contains(OTHER_STEP.pattern))
    )
    return marks.sort("start_ns").select(
        pl.int_range(pl.len(), dtype=pl.Int32).alias("step"),
        pl.col("start_ns").alias("step_start_ns"),
        (pl.col("start_ns") + pl.col("duration_ns")).alias("step_end_ns"),
    )


def with_step(frame: pl.DataFrame, marks: pl.DataFrame, time: str) -> pl.DataFrame:
    """``frame`` with the step in which its column ``time`` lies; null outside of every step."""
    if marks.is_empty():
        return frame.with_columns(pl.lit(None, dtype=pl.Int32).alias("step"))
    joined = frame.with_row_index("_order").sort(time).join_asof(
        marks, left_on=time, right_on="step_start_ns", strategy="backward"
    )  # fmt: skip
    inside = pl.col(time) < pl.col("step_end_ns")
    step = pl.when(inside).then(pl.col("step")).alias("step")
    return joined.with_columns(step).sort("_order").drop("_order", "step_start_ns", "step_end_ns")
