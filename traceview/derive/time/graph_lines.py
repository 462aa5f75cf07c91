"""The user's line of what holds the host inside a compiled graph.

Generated code names no line of the user's; the nodes of its graph do. Where all nodes of an
operator stand at one line, a wait in that operator stands there. Else it stands at the line that
calls the graph.
"""

from __future__ import annotations

import polars as pl

from traceview.derive.origins.traced import operator_word, traced_operators
from traceview.derive.origins.tree import nearest, parents
from traceview.derive.windows import Window
from traceview.tables import Tables

#: An operator of generated code → the node of a graph that becomes it.
_NODES = {"copy": "device_put"}
_GRAPH = ("compile_key", "aot_id")
_PLACE = ("file", "line")


def graph_lines(tables: Tables, window: Window, places: pl.DataFrame) -> pl.DataFrame:
    """``op``, ``file``, ``line`` and ``in_graph`` of operators inside graphs.

    ``places`` are the lines of those around them.
    """
    ops = window.ops.select("op_id", "parent_id", "name", "graph_key")
    words = {name: operator_word(name) for name in ops["name"].unique()}
    word = pl.col("name").replace_strict(words, return_dtype=pl.String).replace(_NODES)
    inside = ops.with_columns(word=word).join(
        _nodes(tables, window, ops), on=["graph_key", "word"], how="left", maintain_order="left"
    )
    placed = ops.join(places, left_on="op_id", right_on="op", how="left", maintain_order="left")
    around = placed.select(_PLACE)[nearest(placed["line"].is_not_null(), parents(ops))]
    return inside.select(
        pl.col("op_id").alias("op"),
        *(pl.coalesce(pl.col(key), around[key]).alias(key) for key in _PLACE),
        in_graph=pl.col("graph_key").is_not_null(),
    ).filter("in_graph").unique("op")  # fmt: skip


def _nodes(tables: Tables, window: Window, ops: pl.DataFrame) -> pl.DataFrame:
    """``graph_key``, ``word``, ``file``, ``line``: nodes of that word that stand at one line.

    Of the graphs that ``ops`` belong to.
    """
    graphs = window.own(tables["graphs"])
    codes = graphs.filter(kind="output_code").join(ops, on="graph_key", how="semi")
    keys = codes.select(*_GRAPH, "graph_key")
    texts = graphs.filter(kind="post_grad").select(*_GRAPH, "text")
    known = keys.join(texts, on=_GRAPH, nulls_equal=True).unique("graph_key")
    rows = [
        (key, word, place)
        for key, text in known.select("graph_key", "text").iter_rows()
        for word, place in traced_operators(text)
    ]
    schema = {"graph_key": pl.String, "word": pl.String, "place": pl.String}
    nodes = pl.DataFrame(rows, schema=schema, orient="row").unique()
    alone = nodes.unique(["graph_key", "word"], keep="none").drop_nulls("place")
    place = pl.col("place").str
    return alone.select(
        "graph_key", "word",
        file=place.extract(r"^(.*):\d+$"), line=place.extract(r":(\d+)$").cast(pl.Int32),
    )  # fmt: skip
