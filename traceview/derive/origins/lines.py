"""Table op_sources: operators of a timing window with the user's line, from the lines window.

The lines window is another step of the same script. The n-th operator of a name under a parent of
a name is taken for the n-th one there, where the step has as many of them; else nothing is said.
"""

from __future__ import annotations

import polars as pl

from traceview.derive.origins.tree import nearest, parents
from traceview.derive.windows import Window

_IS_OP = pl.col("kind") == "cpu_op"
_KEY = ("name", "parent_name", "n", "times")


def op_sources(
    window: Window, ops: pl.DataFrame, marked: pl.DataFrame, compiles: pl.DataFrame
) -> pl.DataFrame:
    """``row``, ``op_id``, ``line_op_id``, ``file``, ``line``, ``how`` of operators with a line.

    ``marked`` are the rows of ``line_ops`` of the same pass, rank and stance, ``compiles`` those of
    table ``compiles``. What autograd's backward ran has the line of its forward. In the compiled
    stance a frame's first line says nothing, and is null: Dynamo's bytecode calls the whole graph
    from there.
    """
    own = _own_lines(window, ops, marked).with_columns(how=pl.lit("line"))
    if window.stance == "compiled":
        own = _without_first_lines(own, compiles)
    backward = ops.filter(pl.col("forward_row").is_not_null()).select("row", "forward_row")
    of_forward = backward.join(
        own.drop_nulls("line").select(pl.col("row").alias("forward_row"), "file", "line"),
        on="forward_row",
    ).join(own.select("row", "line_op_id"), on="row", how="left")  # fmt: skip
    rest = own.join(backward, on="row", how="anti")
    found = pl.concat(
        [
            rest,
            of_forward.select("row", "line_op_id", "file", "line", how=pl.lit("forward")),
        ]
    )
    return found.join(ops.select("row", "op_id"), on="row").sort("row")


def _without_first_lines(own: pl.DataFrame, compiles: pl.DataFrame) -> pl.DataFrame:
    """The operators with how ``frame`` and no line where theirs is a compiled frame's first."""
    first = compiles.select(file="co_filename", line="co_firstlineno", first=True).unique()
    marked = own.join(first, on=["file", "line"], how="left", maintain_order="left")
    found = pl.col("first").is_not_null()
    return marked.select(
        "row", "line_op_id",
        file=pl.when(~found).then("file"), line=pl.when(~found).then("line"),
        how=pl.when(found).then(pl.lit("frame")).otherwise("how"),
    )  # fmt: skip


def _own_lines(window: Window, ops: pl.DataFrame, marked: pl.DataFrame) -> pl.DataFrame:
    """``row``, ``line_op_id``, ``file``, ``line`` of operators that the lines window saw."""
    tids = marked.filter(pl.col("line").is_not_null())["tid"]
    if tids.is_empty() or window.main_tid is None:
        return pl.DataFrame(schema={
            "row": pl.UInt32, "line_op_id": pl.Int64, "file": pl.String, "line": pl.Int32,
        })  # fmt: skip
    marked = marked.sort("start_ns")
    seen = _numbered(marked.with_columns(step=pl.lit(0)), tids.mode().sort()[0])
    seen = seen.select(*_KEY, pl.col("op_id").alias("line_op_id"), "file", "line")
    timed = _numbered(ops.filter(pl.col("step").is_not_null()), window.main_tid)
    return timed.join(seen.filter(pl.col("line").is_not_null()), on=_KEY, how="inner").select(
        "row", "line_op_id", "file", "line"
    )  # fmt: skip


def _numbered(ops: pl.DataFrame, tid: str) -> pl.DataFrame:
    """Operators of one thread, each with its place among those of its name, parent and step."""
    above = parents(ops)
    holder = nearest(ops.select(_IS_OP).to_series(), above).gather(above)
    mine = ops.with_columns(parent_name=pl.col("name").gather(holder).fill_null("")).filter(
        _IS_OP & (pl.col("tid") == tid)
    )
    same = ("step", "name", "parent_name")
    return mine.with_columns(n=pl.int_range(pl.len()).over(same), times=pl.len().over(same))
