"""The user's lines of what no operator of a window names one for: Python, and compiled graphs.

A stretch between two operators of a timing window is the one between the same two operators in the
step whose lines were marked (table ``line_ops``). The line with most time there is the stretch's; a
call's is the line with most time in calls of that name there. Loading data (torch's own mark around
a loader's next batch) stands at the line that asks for the batch in that step, a garbage collection
at the line that it interrupts there.

Generated code names no line of the user's; the nodes of its graph do. Where all nodes of an
operator stand at one line, a wait in that operator stands there. Otherwise it stands at the line
that calls the graph.
"""

from __future__ import annotations

import polars as pl

from traceview.derive.origins.tree import nearest, parents, spelled
from traceview.derive.windows import Window
from traceview.tables import Tables
from traceview.torchtext.fx import operator_lines
from traceview.torchtext.marks import DATA_LOADER, OUR_GC, REGION, starting

#: An operator of generated code → the node of a graph that becomes it.
_NODES = {"copy": "device_put"}
_GRAPH = ("compile_key", "aot_id")
_PLACE = ("file", "line")
_END = pl.col("start_ns") + pl.col("duration_ns")
#: Operators around a stretch, and the runtime call that it is (null: Python).
_SPOT = ("before", "after", "call_name")


def python_lines(line: pl.DataFrame, sources: pl.DataFrame, line_ops: pl.DataFrame) -> pl.DataFrame:
    """``row``, ``file`` and ``line`` for the stretches of ``line`` without an operator.

    ``sources``: op_sources of the window; ``line_ops`` of its stance.
    """
    empty = pl.DataFrame(schema={"row": pl.UInt32, "file": pl.String, "line": pl.Int32})
    if line_ops.is_empty() or sources.is_empty():
        return empty
    between = _between(line, sources)
    # Where each pair of operators lies in the marked step; around its ends there are two spots.
    rows = line_ops.select("op_id", "tid", start="start_ns", end=_END)
    first = rows.select(pl.col("op_id").alias("before"), "tid", begin="end")
    then = rows.select(pl.col("op_id").alias("after"), "tid", until="start")
    pairs = between.select("before", "after").unique()
    spots = pairs.join(first, on="before").join(then, on=["after", "tid"])
    # The one around the step's ends leaves out most; another pair is in another order elsewhere.
    wrong_way = spots.filter(pl.col("begin") >= pl.col("until"))
    most = (pl.col("begin") - pl.col("until")).max().over("tid")
    around = wrong_way.filter(pl.col("begin") - pl.col("until") == most)
    to_end = around.with_columns(until=pl.lit(rows["end"].max(), pl.Int64))
    from_start = around.with_columns(begin=pl.lit(rows["start"].min(), pl.Int64))
    spots = pl.concat([spots.filter(pl.col("begin") < pl.col("until")), to_end, from_start])
    # Stretches of the marked step in which a user's line runs and no operator, but for calls.
    longer = line_ops.filter(pl.col("duration_ns") > 0)
    begins = longer.sort("op_id").select("tid", at="start_ns", open="op_id")
    ends = longer.sort("op_id", descending=True).select("tid", at=_END, open="parent_id")
    edges = pl.concat([ends, begins]).sort("tid", "at", maintain_order=True)
    edges = edges.with_columns(ns=(pl.col("at").shift(-1) - pl.col("at")).over("tid"))
    call = pl.when(pl.col("kind") == "call").then("name")
    holder = line_ops.select(pl.col("op_id").alias("open"), "kind", "file", "line", call_name=call)
    held = edges.filter(pl.col("ns") > 0).join(holder, on="open")
    plain = (pl.col("kind") != "cpu_op") & pl.col("file").is_not_null()
    held = held.filter(plain).select("tid", "ns", "file", "line", "call_name", start="at")
    marked = held.sort("start").join_asof(
        spots.sort("begin"), left_on="start", right_on="begin", by="tid", check_sortedness=False
    )
    marked = marked.filter(pl.col("start") < pl.col("until"))
    lines = marked.group_by(*_SPOT, "file", "line").agg(pl.col("ns").sum())
    lines = lines.sort("ns", "file", "line", descending=[True, False, False])
    longest = lines.unique(_SPOT, keep="first", maintain_order=True)
    found = between.join(longest, on=_SPOT, how="inner", nulls_equal=True)
    return found.select("row", "file", "line")


def mark_lines(line_ops: pl.DataFrame) -> pl.DataFrame:
    """``name``, ``file``, ``line`` of loaders' and collections' marks that have a single line."""
    marked = pl.col("name").str.contains(starting(DATA_LOADER, OUR_GC))
    marks = line_ops.filter(marked, pl.col("file").is_not_null())
    places = marks.select("name", "file", "line").unique(maintain_order=True)
    return places.unique("name", keep="none", maintain_order=True)


def _between(line: pl.DataFrame, sources: pl.DataFrame) -> pl.DataFrame:
    """Stretches without an operator, between the line_ops rows ``before`` and ``after``."""
    known = sources.select(
        pl.col("op_id").alias("op"), pl.col("line_op_id").alias("seen")
    ).drop_nulls()
    # A compiled graph's own operators have no line, and the region goes on around a graph break.
    operators = (pl.col("kind") == "cpu_op") & pl.col("graph_key").is_null()
    operators &= ~pl.col("name").str.starts_with(REGION)
    operator = pl.when(operators).then("op")
    line = line.select("row", "tid", "call_name", op=operator).join(
        known.unique("op"), on="op", how="left", maintain_order="left"
    )
    # An operator that the marked step does not have hides what is next to it. Steps follow steps:
    # before the first operator of the window stands one like the last.
    seen = pl.when(pl.col("op").is_not_null()).then(pl.col("seen").fill_null(-1))
    before, after = seen.forward_fill(), seen.backward_fill()
    line = line.with_columns(
        before=before.fill_null(before.last()).over("tid"),
        after=after.fill_null(after.first()).over("tid"),
    )
    placed = (pl.col("before") >= 0) & (pl.col("after") >= 0)
    return line.filter(pl.col("op").is_null() & placed)


def graph_lines(tables: Tables, window: Window, places: pl.DataFrame) -> pl.DataFrame:
    """``op``, ``file``, ``line`` and ``in_graph`` of operators inside graphs.

    ``places`` are the lines of those around them.
    """
    ops = window.ops.select("op_id", "parent_id", "name", "graph_key")
    word = spelled(ops["name"]).replace(_NODES)
    graphs = window.own(tables["graphs"])
    codes = graphs.filter(kind="output_code").join(ops, on="graph_key", how="semi")
    texts = graphs.filter(kind="post_grad").select(*_GRAPH, "text")
    known = codes.select(*_GRAPH, "graph_key").join(texts, on=_GRAPH, nulls_equal=True)
    rows = [
        (key, word, place)
        for key, text in known.unique("graph_key").select("graph_key", "text").iter_rows()
        for word, place in operator_lines(text)
    ]
    # Nodes of a word that all stand at one line.
    same = ("graph_key", "word")
    nodes = pl.DataFrame(rows, schema=dict.fromkeys((*same, "place"), pl.String), orient="row")
    alone = nodes.unique().unique(same, keep="none").drop_nulls("place")
    place = pl.col("place").str
    lines = alone.select(
        *same, file=place.extract(r"^(.*):\d+$"), line=place.extract(r":(\d+)$").cast(pl.Int32)
    )
    inside = ops.with_columns(word=word).join(lines, on=same, how="left", maintain_order="left")
    placed = ops.join(places, left_on="op_id", right_on="op", how="left", maintain_order="left")
    around = placed.select(_PLACE)[nearest(placed["line"].is_not_null(), parents(ops))]
    found = inside.select(
        pl.col("op_id").alias("op"),
        *(pl.coalesce(pl.col(key), around[key]).alias(key) for key in _PLACE),
        in_graph=pl.col("graph_key").is_not_null(),
    )
    return found.filter("in_graph").unique("op")
