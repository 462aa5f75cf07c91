"""Table line_ops: the host events of a lines window, each with the user's line that ran it."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from traceview.parse.kineto.nesting import nest
from traceview.parse.kineto.reader import RawFrames
from traceview.parse.kineto.steps import step_marks, steps_of
from traceview.torchtext import marks


def line_ops(raw: RawFrames, files: Sequence[str | None]) -> pl.DataFrame:
    """Rows of the marked step, without pass, rank and stance; ``files`` as the marks count them.

    Operators of a compiled graph have no line: Dynamo's bytecode calls the whole graph in one.
    """
    steps = step_marks(raw.host)
    whats = raw.host.whats
    host, contexts = nest(_until(raw.host.rows, steps), whats)
    inside = steps_of(host["start_ns"], steps).is_not_null()
    numbered = host.select("op_id", pl.when(inside).then(inside.cum_sum() - 1).alias("row_id"))
    # Calls are rows too, so the rows are numbered anew.
    ops = numbered.filter(pl.col("op_id").is_not_null())["row_id"]
    host = host.with_columns(
        numbered["row_id"].alias("op_id"),
        ops.gather(host["parent_id"]).alias("parent_id"),
        *(whats[name].gather(host["what"]) for name in whats.columns),
        *(contexts[name].gather(host["context"]) for name in contexts.columns),
    )
    children = host.group_by("parent_id").agg(pl.col("duration_ns").sum().alias("children_ns"))
    host = host.filter(pl.col("op_id").is_not_null()).join(
        children, left_on="op_id", right_on="parent_id", how="left", maintain_order="left"
    )
    self_ns = pl.col("duration_ns") - pl.col("children_ns").fill_null(0)
    is_line = pl.col("name").str.contains(marks.OUR_LINE)
    place = pl.format("{}:{}", "file", "line")  # null for a file that the collector did not name
    file, line = _place(files)
    return host.with_columns(
        self_ns=self_ns.clip(lower_bound=0),
        kind=pl.when(is_line).then(pl.lit("line")).otherwise("kind"),
        file=file,
        line=line,
    ).select(
        "op_id", "parent_id", "depth",
        pl.coalesce(pl.when(is_line).then(place), "name").alias("name"),
        "kind", "tid", "start_ns", "duration_ns", "self_ns", "sequence", "file", "line", "region",
    )  # fmt: skip


def _until(host: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """``host``, ended with the step at the latest.

    Where the step ends, lines are still being run, and so may be an operator around us; the trace
    says that the latter ends with the trace, hence after the line that it lies in.
    """
    end = pl.lit(steps["end_ns"].max(), dtype=pl.Int64) - pl.col("start_ns")
    return host.with_columns(
        pl.when(end >= 0).then(pl.min_horizontal("duration_ns", end)).otherwise("duration_ns")
        .alias("duration_ns")
    )  # fmt: skip


def _place(files: Sequence[str | None]) -> tuple[pl.Expr, pl.Expr]:
    """File and line of the innermost mark around a row; null in a compiled graph."""
    outside = pl.when(pl.col("graph_key").is_null()).then("line").str.split(":")
    index = outside.list.get(0).cast(pl.UInt32)
    names = pl.lit(pl.Series([*files], dtype=pl.String))
    return names.gather(index, null_on_oob=True), outside.list.get(1).cast(pl.Int32)
