"""Questions about the tree of operators of one profiler window, answered for all rows at once."""

from __future__ import annotations

import polars as pl

from traceview.torchtext import marks
from traceview.torchtext.fx import operator_word

#: Every jump doubles the levels that it spans: more than any stack is deep.
_JUMPS = 24


def parents(ops: pl.DataFrame) -> pl.Series:
    """Row of every row's parent; null at the top, and where several rows have the parent's id."""
    rows = ops.select("op_id").with_row_index("parent_row").unique("op_id", keep="none")
    return ops.select("parent_id").join(
        rows, left_on="parent_id", right_on="op_id", how="left", maintain_order="left"
    )["parent_row"]


def nearest(flags: pl.Series, above: pl.Series) -> pl.Series:
    """Row of the nearest row, upwards and itself included, for which ``flags`` holds."""
    rows = pl.int_range(len(flags), dtype=pl.UInt32, eager=True)
    found = rows.set(~flags, None)
    for _ in range(_JUMPS):
        if len(above) in (above.null_count(), found.null_count()):
            break
        found = pl.select(pl.coalesce(found, found[above])).to_series()
        above = above[above]
    return found


def numbered(rows: pl.DataFrame, *same: str) -> pl.DataFrame:
    """``rows`` with ``n``, the place of each among those alike in ``same``, and their ``times``."""
    return rows.with_columns(n=pl.int_range(pl.len()).over(same), times=pl.len().over(same))


def spelled(names: pl.Series) -> pl.Series:
    """The operator's word of every name: ``add`` for ``aten::add_``."""
    words = {name: operator_word(name) for name in names.unique()}
    found: pl.Series = names.replace_strict(words, default=None, return_dtype=pl.String)
    return found


def with_context(ops: pl.DataFrame) -> pl.DataFrame:
    """``ops`` with rows of what stands around each operator, all null where nothing does.

    ``row``, ``parent_row``; ``top_row``: the outermost operator, not counting marks and autograd's
    functions; ``backward_row``: the function that autograd evaluates; ``graph_row``: the call of a
    compiled graph; ``compiled_row``: the compiled region.
    """
    above = parents(ops)
    name = pl.col("name")
    flags = ops.select(
        backward=name.str.starts_with(marks.AUTOGRAD),
        graph=name.str.starts_with(marks.GRAPH),
        compiled=name.str.starts_with(marks.REGION),
        plain=(pl.col("kind") == "cpu_op")
        & ~pl.col("category").is_in(["overhead", "mark"])
        & name.str.contains("::", literal=True)
        & ~name.str.contains("autograd::", literal=True),
    )
    inside = flags["plain"][above].fill_null(False)
    return ops.with_columns(
        pl.int_range(pl.len(), dtype=pl.UInt32).alias("row"),
        above.alias("parent_row"),
        nearest(flags["plain"] & ~inside, above).alias("top_row"),
        nearest(flags["backward"], above).alias("backward_row"),
        nearest(flags["graph"], above).alias("graph_row"),
        nearest(flags["compiled"], above).alias("compiled_row"),
    )


def forward_rows(ops: pl.DataFrame) -> pl.Series:
    """Row of the forward operator of every row that autograd's backward ran; else null.

    Autograd gives a function the sequence number of the operator that made it; operators before it
    that made none carry the same number, so the last one is it.
    """
    numbered = ops.filter(pl.col("sequence").is_not_null() & pl.col("backward_row").is_null())
    made = (
        numbered.sort("start_ns")
        .group_by("sequence", maintain_order=True)
        .agg(pl.col("row").last().alias("forward_row"))
    )
    around = ops.select(pl.col("sequence").gather(pl.col("backward_row")))
    return around.join(made, on="sequence", how="left", maintain_order="left")["forward_row"]
