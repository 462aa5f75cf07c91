"""Which of the user's lines an operator belongs to, and how that is known.

Table ``op_sources`` has the lines that the lines window saw, which is another step of the same
script: the n-th operator of a name under a parent of a name is taken for the n-th one there, where
the step has as many of them; else nothing is claimed.

Where no lines window was recorded, the graphs still name lines: Dynamo's graph of a region has a
node for each operator that the same Python runs in eager. The n-th operator of a name is the n-th
node of that name, wherever a step has as many of one as of the other.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import polars as pl

from traceview.derive.origins.tree import nearest, numbered, parents, spelled
from traceview.derive.windows import Window
from traceview.json_errors import NOT_JSON
from traceview.tables import Tables
from traceview.torchtext.fx import operator_lines


class _Frame(msgspec.Struct):
    file: str | None = None
    line: int | None = None


_STACK = msgspec.json.Decoder(list[_Frame])


def region_lines(tables: Tables, window: Window) -> dict[str, str]:
    """Region → ``file:line`` of the user's call of it: where its first call stands."""
    rows = window.own(tables["regions"])
    found = {}
    for region, text in rows.select("region_id", "first_call_stack").drop_nulls().iter_rows():
        try:
            stack = _STACK.decode(text)
        except NOT_JSON:
            continue
        if stack and stack[-1].file and stack[-1].line:
            found[str(region)] = f"{stack[-1].file}:{stack[-1].line}"
    return found


def places(
    ops: pl.DataFrame, sources: pl.DataFrame | None, traced: pl.DataFrame | None
) -> pl.DataFrame:
    """``ops`` with ``place`` (``file:line``) and ``how``: line, forward, operator; null: not known.

    ``sources`` are the lines that a lines window saw; ``traced`` gives those of the graph that was
    traced from the same call, for outermost operators. A backward has its forward's place.
    """
    seen = None
    if sources is not None:
        seen = sources.filter(how="line").select("row", place=pl.format("{}:{}", "file", "line"))
    found = ops.select("row", "top_row", "forward_row")
    for name, known in (("own", seen), ("graph", traced)):
        if known is None:
            found = found.with_columns(pl.lit(None, dtype=pl.String).alias(name))
        else:
            named = known.select("row", pl.col("place").alias(name))
            found = found.join(named, on="row", how="left", maintain_order="left")
    found = found.with_columns(
        own=pl.coalesce("own", pl.col("own").gather("top_row")),
        graph=pl.col("graph").gather("top_row"),
    )
    is_backward = pl.col("forward_row").is_not_null()
    own, graph = (
        pl.when(is_backward).then(pl.col(name).gather("forward_row")).otherwise(name)
        for name in ("own", "graph")
    )
    way = pl.when(is_backward).then(pl.lit("forward")).otherwise(pl.lit("line"))
    how = pl.when(own.is_not_null()).then(way).when(graph.is_not_null()).then(pl.lit("operator"))
    return ops.with_columns(found.select(place=pl.coalesce(own, graph), how=how))


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
    tids = marked.filter(pl.col("line").is_not_null())["tid"]
    if tids.is_empty() or window.main_tid is None:
        schema = {"row": pl.UInt32, "line_op_id": pl.Int64, "file": pl.String, "line": pl.Int32}
        own = pl.DataFrame(schema=schema)
    else:
        in_order = marked.sort("start_ns").with_columns(step=pl.lit(0))
        seen = _numbered(in_order, tids.mode().sort()[0]).drop_nulls("line")
        seen = seen.select(*_KEY, pl.col("op_id").alias("line_op_id"), "file", "line")
        timed = _numbered(ops.filter(pl.col("step").is_not_null()), window.main_tid)
        own = timed.join(seen, on=_KEY).select("row", "line_op_id", "file", "line")
    own = own.with_columns(how=pl.lit("line"))
    if window.stance == "compiled":
        first = compiles.select(file="co_filename", line="co_firstlineno", first=True).unique()
        own = own.join(first, on=["file", "line"], how="left", maintain_order="left")
        is_first = pl.col("first").is_not_null()
        own = own.select(
            "row",
            "line_op_id",
            file=pl.when(~is_first).then("file"),
            line=pl.when(~is_first).then("line"),
            how=pl.when(is_first).then(pl.lit("frame")).otherwise("how"),
        )
    backward = ops.filter(pl.col("forward_row").is_not_null()).select("row", "forward_row")
    of_forward = backward.join(
        own.drop_nulls("line").select(pl.col("row").alias("forward_row"), "file", "line"),
        on="forward_row",
    ).join(own.select("row", "line_op_id"), on="row", how="left")
    of_forward = of_forward.select("row", "line_op_id", "file", "line", how=pl.lit("forward"))
    found = pl.concat([own.join(backward, on="row", how="anti"), of_forward])
    return found.join(ops.select("row", "op_id"), on="row").sort("row")


def _numbered(ops: pl.DataFrame, tid: str) -> pl.DataFrame:
    """Operators of one thread, each with its place among those of its name, parent and step."""
    above = parents(ops)
    holder = nearest(ops.select(_IS_OP).to_series(), above)[above]
    mine = ops.with_columns(parent_name=pl.col("name").gather(holder).fill_null("")).filter(
        _IS_OP & (pl.col("tid") == tid)
    )
    return numbered(mine, "step", "name", "parent_name")


#: Steps that differ from one another, at most; each is compared with every eager step.
_MOST_WAYS = 8
_Item = tuple[str, str | None]


def moved_lines(tables: Tables, window: Window) -> pl.DataFrame:
    """``graph_key`` and ``moved``: the user's line of all copies between devices in that graph.

    Generated code copies them without a call that could name a node. None where there are several
    lines.
    """
    graphs = window.own(tables["graphs"])
    keys = graphs.filter(kind="output_code").select("compile_key", "aot_id", "graph_key")
    texts = graphs.filter(pl.col("text").str.contains("device_put"), kind="post_grad")
    known = texts.select("compile_key", "aot_id", "text").join(
        keys, on=["compile_key", "aot_id"], nulls_equal=True
    )
    rows = [
        (key, place)
        for key, text in known.unique("graph_key").select("graph_key", "text").iter_rows()
        for word, place in operator_lines(text)
        if word == "device_put"
    ]
    found = pl.DataFrame(rows, {"graph_key": pl.String, "moved": pl.String}, orient="row")
    return found.unique().unique("graph_key", keep="none").drop_nulls()


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
    # What compiled steps run in order: nodes of the graphs they enter, operators between. Steps
    # that differ (other shapes, another branch) are several ways to go.
    marks = compiled_ops.filter(
        (pl.col("row") == pl.col("graph_row"))
        & pl.col("backward_row").is_null()
        & pl.col("step").is_not_null()
    ).with_columns(word=pl.lit(None, dtype=pl.String))
    traced = window.own(tables["graphs"]).filter(
        pl.col("compile_id").is_in(marks["compile_id"].unique().implode()), kind="dynamo_output"
    )
    nodes = {row["compile_id"]: operator_lines(row["text"]) for row in traced.to_dicts()}
    both = pl.concat([marks, _outermost(compiled_ops)]).sort("start_ns")
    steps = both.group_by("step", maintain_order=True).agg("word", "compile_id", "region")
    ways = dict.fromkeys(
        tuple(zip(*row, strict=True))
        for row in steps.select("word", "compile_id", "region").iter_rows()
    )
    known: list[list[_Item]] = []
    for way in [*ways][:_MOST_WAYS]:
        known.append([])
        for word, compile_id, region in way:
            if word is not None:
                known[-1].append((word, None))
                continue
            call = calls.get(region or "")
            known[-1] += [(node, line or call) for node, line in nodes.get(compile_id or "", ())]
    items = pl.DataFrame(
        [(way, *item) for way, items in enumerate(known) for item in items],
        schema={"way": pl.Int32, "word": pl.String, "place": pl.String},
        orient="row",
    )
    items = numbered(items, "way", "word")
    tops = _outermost(eager_ops).select("row", "step", "word", "start_ns").sort("start_ns")
    tops = numbered(tops, "step", "word")
    found = tops.join(items, on=["word", "n", "times"], how="inner")
    closest = found.group_by("step", "way").len().sort("len", "way", descending=[True, False])
    closest = closest.unique("step", keep="first", maintain_order=True).drop("len")
    found = found.join(closest, on=["step", "way"], how="semi").drop_nulls("place")
    return found.select("row", "place")


def _outermost(ops: pl.DataFrame) -> pl.DataFrame:
    """Outermost forward operators inside regions, outside compiled graphs, with their ``word``."""
    tops = ops.filter(
        (pl.col("row") == pl.col("top_row"))
        & pl.col("region").is_not_null()
        & pl.col("backward_row").is_null()
        & pl.col("graph_row").is_null()
        & pl.col("step").is_not_null()
    )
    return tops.with_columns(word=spelled(tops["name"]))
