"""What a compiled call does after its graph to give out views: table ``output_views``.

A graph gives out no view of its inputs: autograd would not know of what. AOTAutograd has the graph
return them all the same, and makes each again from its base in every call
(``gen_alias_from_base`` in torch/_functorch/_aot_autograd/functional_utils.py): by the operators
that made it, in Python, one output after the other. One of the results of ``unbind`` or ``split``
is made again by making all of them, so that the work grows with the square of their number.

It is seen in the profile: operators that make views, right in the region's mark and after the last
of torch.compile's own marks in it. Code after a graph break may run such operators there too, so
regions with another look-up in them, or whose compile had a graph break, are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import polars as pl

from traceview.derive import causes
from traceview.derive.windows import Window
from traceview.tables import Tables
from traceview.torchtext.fx import ITEM, VIEW_WORDS, Graph
from traceview.torchtext.marks import LOOKUP, REGION

Row = dict[str, Any]
_EVENTS = [f"aten::{word}" for word in VIEW_WORDS]
_END = pl.col("start_ns") + pl.col("duration_ns")


def output_views(
    tables: Tables, found: Sequence[Window], parse: Callable[[str], Graph]
) -> Iterator[Row]:
    """One row for each compiled graph whose calls make views again, and each profiled rank."""
    broken = set(tables["graph_breaks"]["compile_key"])
    costs = {
        (row["pass"], row["rank"]): row["event_cost_us"] or 0.0
        for row in tables["step_counts"].filter(stance="compiled").iter_rows(named=True)
    }
    for window in found:
        if window.stance != "compiled" or not window.steps:
            continue
        # The last that has this id: a reset begins again to count.
        compiles = window.own(tables["compiles"]).filter(pl.col("is_forward").fill_null(True))
        keys = dict(compiles.sort("started_us").select("compile_id", "compile_key").iter_rows())
        cost = costs.get((window.pass_name, window.rank), 0.0)
        # Where the profiled step was a slower one than those that were timed, each part was.
        account = window.own(tables["accounting"])
        named = ~pl.col("category").is_in(causes.UNNAMED)
        timed, parts = float(account["ms"].sum()), float(account.filter(named)["ms"].sum())
        speed = min(1.0, timed / parts) if parts > 0.0 else 1.0
        for made in _made_again(window).iter_rows(named=True):
            key = keys.get(made["compile_id"])
            graphs = tables["graphs"].filter(kind="dynamo_output", compile_key=key)
            if key in broken or graphs.is_empty():
                continue
            graph = parse(graphs["text"][-1])
            views = [graph.nodes[name] for name in sorted(graph.outputs) if graph.gives_view(name)]
            lines = Counter(node.user_line for node in views if node.user_line)
            micros = (made["ns"] / 1e3 - cost * made["inner"]) * speed
            if not views or micros <= 0.0:
                continue
            region = made["region"]
            yield {
                "pass": window.pass_name,
                "rank": window.rank,
                "region_id": int(region) if region and region.isdigit() else None,
                "compile_key": key,
                "compile_id": made["compile_id"],
                "outputs": len(graph.outputs),
                "views": len(views),
                "computes": any(
                    node.target and node.op != ITEM and node.word not in VIEW_WORDS
                    for node in graph.assigned
                ),
                "calls": made["calls"] / window.steps,
                "operators": made["inner"] / made["calls"],
                "us_per_call": micros / made["calls"],
                "ms": micros / 1e3 / window.steps,
                "user_line": lines.most_common(1)[0][0] if lines else None,
            }


def _made_again(window: Window) -> pl.DataFrame:
    """By region and compile id: ``ns`` after the graph, and ``inner``, the events of views in it.

    In all ``calls`` of the window. Regions whose last part makes no views are left out.
    """
    steps = window.ops.filter(pl.col("step").is_not_null())
    regions = steps.filter(pl.col("name").str.starts_with(REGION)).select(
        "op_id", "region", "compile_id", end=_END
    )
    inside = steps.select("parent_id", "name", "category", "start_ns", until=_END).join(
        regions, left_on="parent_id", right_on="op_id"
    )
    own = pl.col("category") == "overhead"
    after = pl.col("until").filter(own).max().over("parent_id")
    views = pl.col("name").is_in(_EVENTS) & (pl.col("start_ns") >= after)
    calls = inside.group_by("parent_id", "region", "compile_id", maintain_order=True).agg(
        ns=pl.col("end").first() - pl.col("until").filter(own).max(),
        views=views.sum(),
        others=(pl.col("name") == LOOKUP).any(),
    )
    found = calls.filter((pl.col("views") > 0) & ~pl.col("others"))
    events = steps.filter(pl.col("graph_key").is_null() & pl.col("name").is_in(_EVENTS))
    by = ["region", "compile_id"]
    inner = events.group_by(by).agg(inner=pl.len())
    summed = found.group_by(by, maintain_order=True).agg(pl.col("ns").sum(), calls=pl.len())
    return summed.join(inner, on=by, how="left", nulls_equal=True, maintain_order="left")
