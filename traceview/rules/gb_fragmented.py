"""
## What it finds
One call of a compiled callable that runs as many small graphs.

## Why it costs
Each graph is fused by itself and entered by itself: guards are checked, Python runs between them,
and what one graph writes the next one reads back from memory. It need not be slower than eager,
but it is slower than one graph would be.

## Evidence
More than three compiled graphs per call of a compiled callable in the profiler window, a
median of fewer than ten operations a graph, and graph breaks that explain them. The cost is what
is seen of all breaks: Python between the regions, and entering more of them than one.

A warning where that is at least 5 % of the step, or 0.05 ms and 1 % of it; else information.

## What to do
Start with the first line listed: each break that you remove merges two graphs.
`torch.compile(fullgraph=True)` on the block lists the first break that is left. It raises at a
break, so it is a test, not a setting for production.

## Settings
- `most_graphs_a_call`: graphs per call up to which nothing is reported.
- `small_graph_ops`: operations in the median graph from which on nothing is reported.

## References
- https://docs.pytorch.org/docs/stable/compile/programming_model.fullgraph_true.html
- https://docs.pytorch.org/docs/stable/compile/programming_model.graph_breaks_index.html
- torch/_dynamo/graph_break_registry.json
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from traceview.rules import _breaks
from traceview.rules.kit import (
    MOST_EVIDENCE,
    Cost,
    Evidence,
    Finding,
    Tables,
    first,
    first_rank,
    from_row,
    milliseconds,
    percent,
    plural,
    rows,
    severity,
    short,
    step_ms,
)

CODE = "TV105"
NEEDS = frozenset({"break_sites", "compiles", "step_counts", "region_costs"})
SEVERITIES = ("warning", "info")
EXPLAINS = frozenset({"graph_break", "idle_graph_break", "overheads_added"})
FOLLOWS = _breaks.RULES

#: One break makes two graphs and a second one three: gb-item and its like report those.
MOST_GRAPHS_A_CALL = 3
#: Ten operations are about what one fused kernel holds; larger graphs lose little at the break.
SMALL_GRAPH_OPS = 10


def check(
    tables: Tables,
    *,
    most_graphs_a_call: float = MOST_GRAPHS_A_CALL,
    small_graph_ops: float = SMALL_GRAPH_OPS,
) -> Iterator[Finding]:
    """At most one finding: the step as a whole is fragmented."""
    counts = first(tables, "step_counts", stance="compiled")
    calls = sum(row["calls_per_step"] or 0 for row in first_rank(rows(tables, "region_costs")))
    sizes = [row["graph_op_count"] for row in rows(tables, "compiles") if row["graph_op_count"]]
    costs = [(_breaks.cost(tables, site)[0], site) for site in _breaks.sites(tables)]
    costs.sort(key=lambda pair: (-(pair[0].ms_per_step or 0.0), -len(pair[1].rows)))
    sites = [site for _, site in costs]
    if not (counts and counts["compiled_regions"] and calls and sizes and sites):
        return
    # Graphs that a step enters; a region without any operation is none.
    entries = first_rank(rows(tables, "call_path", part="pregraph_bytecode"))
    entered = float(sum(row["calls"] or 0.0 for row in entries) or counts["compiled_regions"])
    median = statistics.median(sizes)
    if entered / calls <= most_graphs_a_call or median >= small_graph_ops:
        return

    seen = (row["all_ms"] for row in rows(tables, "break_costs") if row["all_ms"] is not None)
    gap, step = next(seen, None), step_ms(tables, "compiled")
    counted = f"{entered:.3g} graphs per step, from "
    counted += f"{'1 call' if calls == 1 else f'{calls:.3g} calls'} of compiled code"
    if gap is not None and step:
        counted += f", {milliseconds(gap)} for the breaks ({percent(gap / step)} of the step)"
    yield Finding(
        code=CODE,
        rule="gb-fragmented",
        severity="info" if gap is None else severity(tables, gap),
        title=(
            f"One call runs as {entered / calls:.0f} graphs of {median:.0f} operations each "
            "(median)"
        ),
        explanation=(
            f"Graph breaks at {plural(len(sites), 'line')} cut the code into pieces that cannot "
            "fuse with each other."
        ),
        cost=Cost(
            ms_per_step=gap,
            about="Python between the regions, and entering more than one; fusing across the "
            "breaks would save more",
        ),
        confidence="derived",
        location=sites[0].place,
        inside=sites[0].inside,
        about=frozenset().union(*(site.about for site in sites)),
        evidence=(
            Evidence(counted, "step_counts"),
            *(
                from_row(
                    f"{short(site.place)}: {site.evidence()[0].text}", "graph_breaks", site.rows[0]
                )
                for site in sites[:MOST_EVIDENCE]
            ),
        ),
        what_to_do=_breaks.at_call(
            sites[0],
            "Remove the breaks, this line first: each one that you remove merges two graphs. "
            "torch.compile(..., fullgraph=True) on the block names the first one that is left.",
            None,
        )[0],
        also_at=tuple(site.place for site in sites[1:] if site.place),
    )
