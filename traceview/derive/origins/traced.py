"""Lines of eager operators by way of the graphs that were traced from the same calls.

Where no lines window was recorded, the graphs still name lines: Dynamo's graph of a region has a
node for each operator that the same Python runs in eager. The n-th operator of a name is the n-th
node of that name, wherever a step has as many of one as of the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import polars as pl

from traceview.derive.windows import Window
from traceview.tables import Tables
from traceview.torchtext.fx import operator_lines, operator_word

#: Steps that differ from one another, at most; each is compared with every eager step.
_MOST_WAYS = 8
_Item = tuple[str, str | None]


def traced_lines(
    tables: Tables,
    window: Window,
    eager_ops: pl.DataFrame,
    compiled_ops: pl.DataFrame,
    calls: Mapping[str, str],
) -> pl.DataFrame:
    """``row`` of outermost eager operators inside regions → ``place`` (``file:line``), as known.

    ``calls`` has the place where a region is called: that of nodes without a line of the user's.
    """
    known = _references(tables, window, compiled_ops, calls)
    items = pl.DataFrame(
        [(way, *item) for way, items in enumerate(known) for item in items],
        schema={"way": pl.Int32, "word": pl.String, "place": pl.String}, orient="row",
    )  # fmt: skip
    same = ("way", "word")
    items = items.with_columns(n=pl.int_range(pl.len()).over(same), total=pl.len().over(same))
    tops = _outermost(eager_ops).select("row", "step", "word", "start_ns").sort("start_ns")
    same = ("step", "word")
    tops = tops.with_columns(n=pl.int_range(pl.len()).over(same), total=pl.len().over(same))
    found = tops.join(items, on=["word", "n", "total"], how="inner")
    closest = found.group_by("step", "way").len().sort("len", "way", descending=[True, False])
    closest = closest.unique("step", keep="first", maintain_order=True).drop("len")
    found = found.join(closest, on=["step", "way"], how="semi").drop_nulls("place")
    return found.select("row", "place")


def _outermost(ops: pl.DataFrame) -> pl.DataFrame:
    """Outermost forward operators inside regions, outside compiled graphs, with their ``word``."""
    tops = ops.filter(
        (pl.col("row") == pl.col("top_row")) & pl.col("region").is_not_null()
        & pl.col("backward_row").is_null() & pl.col("graph_row").is_null()
        & pl.col("step").is_not_null()
    )  # fmt: skip
    words = {name: operator_word(name) for name in tops["name"].unique()}
    return tops.with_columns(
        word=pl.col("name").replace_strict(words, default=None, return_dtype=pl.String)
    )


def _references(
    tables: Tables, window: Window, ops: pl.DataFrame, calls: Mapping[str, str]
) -> list[list[_Item]]:
    """What compiled steps run in order: nodes of the graphs they enter, operators between.

    Steps that differ (other shapes, another branch) are several ways to go.
    """
    marks = ops.filter(
        (pl.col("row") == pl.col("graph_row")) & pl.col("backward_row").is_null()
        & pl.col("step").is_not_null()
    ).with_columns(word=pl.lit(None, dtype=pl.String))  # fmt: skip
    traced = window.own(tables["graphs"]).filter(
        pl.col("compile_id").is_in(marks["compile_id"].unique().implode()), kind="dynamo_output"
    )
    nodes = {row["compile_id"]: operator_lines(row["text"]) for row in traced.to_dicts()}
    both = pl.concat([marks, _outermost(ops)]).sort("start_ns")
    steps = both.group_by("step", maintain_order=True).agg("word", "compile_id", "region")
    ways = dict.fromkeys(
        tuple(zip(*row, strict=True))
        for row in steps.select("word", "compile_id", "region").iter_rows()
    )
    return [list(_way(way, nodes, calls)) for way in [*ways][:_MOST_WAYS]]


def _way(
    events: Iterable[tuple[str | None, str | None, str | None]],
    nodes: Mapping[str, Sequence[_Item]],
    calls: Mapping[str, str],
) -> Iterator[_Item]:
    for word, compile_id, region in events:
        if word is not None:
            yield word, None
            continue
        call = calls.get(region or "")
        yield from ((node, line or call) for node, line in nodes.get(compile_id or "", ()))
