"""
## What it finds
One call of a compiled callable that runs as many small graphs.

## Why it costs
Each graph is fused by itself and entered by itself: guards are checked, Python runs between them,
and what one graph writes the next one reads back from memory. It need not be slower than eager,
but it is slower than one graph would be.

## Evidence
More than three compiled graphs for each call of a compiled callable in the profiler window, a
median of fewer than ten operations a graph, and graph breaks that explain them. The cost is what
is seen of all the cuts: Python between the regions, and entering more of them than one.

A warning where that is at least 5 % of the step, or 0.05 ms and 1 % of it; else information.

## What to do
Start with the first line listed: each break that goes merges two graphs.
`torch.compile(fullgraph=True)` on the block lists the first break that is left. It raises at a
break, so it is a test, not a setting for production.

## Settings
- `most_graphs_a_call`: graphs for each call up to which nothing is said.
- `small_graph_ops`: operations that a graph of median size has at least where nothing is said.

## References
- https://docs.pytorch.org/docs/stable/compile/programming_model.fullgraph_true.html
- https://docs.pytorch.org/docs/stable/compile/programming_model.graph_breaks_index.html
- torch/_dynamo/graph_break_registry.json
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from traceview.rules import _break_costs, _breaks, _costs, _places
from traceview.rules._evidence import MOST_EVIDENCE
from traceview.rules._families import GRAPH_BREAKS
from traceview.rules._rows import Row, first, first_rank, rows
from traceview.rules.finding import Cost, Evidence, Finding
from traceview.tables import Tables
from traceview.words.numbers import milliseconds, percent, plural

CODE = "TV105"
NEEDS = frozenset({"graph_breaks", "compiles", "step_counts", "region_costs"})
EXPLAINS = frozenset({"graph_break", "idle_graph_break", "overheads_added"})
FOLLOWS = GRAPH_BREAKS

#: One break makes two graphs and a second one three: that is gb-item's and its like's business.
MOST_GRAPHS_A_CALL = 3
#: Ten operations are about what one fused kernel holds; larger graphs lose little at the cut.
SMALL_GRAPH_OPS = 10
_SEEN = (
    "Python between the regions, and entering more than one; what fusing across the cuts would "
    "save comes on top"
)


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
    breaks = tables.once(_break_costs.Breaks)
    sites = sorted(_breaks.sites(tables), key=lambda site: _dearest(breaks, site))
    if not (counts and counts["compiled_regions"] and calls and sizes and sites):
        return
    graphs = _graphs(tables, counts) / calls
    median = statistics.median(sizes)
    if graphs <= most_graphs_a_call or median >= small_graph_ops:
        return
    gap, step = breaks.cut_ms, _costs.step_ms(tables, "compiled")
    share = gap / step if gap is not None and step else None
    yield Finding(
        code=CODE,
        rule="gb-fragmented",
        severity="info" if gap is None else _costs.severity(tables, gap),
        title=f"One call runs as {graphs:.0f} graphs of {median:.0f} operations each (median)",
        explanation=f"Graph breaks at {plural(len(sites), 'place')} cut the code into pieces that "
        "cannot fuse with each other.",
        cost=Cost(ms_per_step=gap, about=_SEEN),
        confidence="derived",
        location=sites[0].place,
        inside=sites[0].inside,
        about=frozenset().union(*(site.about for site in sites)),
        evidence=(_counted(graphs * calls, calls, gap, share), *_cuts(sites)),
        what_to_do=(
            "Remove the breaks, this line first: each one that goes merges two graphs. "
            "torch.compile(..., fullgraph=True) on the block names the first one that is left."
        ),
        also_at=tuple(site.place for site in sites[1:] if site.place),
    )


def _graphs(tables: Tables, counts: Row) -> float:
    """Graphs that a step enters; a region without any operation is none."""
    entered = first_rank(rows(tables, "call_path", part="pregraph_bytecode"))
    return float(sum(row["calls"] or 0.0 for row in entered) or counts["compiled_regions"])


def _dearest(breaks: _break_costs.Breaks, site: _breaks.Site) -> tuple[float, int]:
    return -(breaks.cost(site)[0].ms_per_step or 0.0), -len(site.rows)


def _counted(entered: float, calls: float, gap: float | None, share: float | None) -> Evidence:
    text = f"{entered:.3g} graphs per step, from {_calls(calls)} of compiled code"
    if gap is not None and share is not None:
        text += f", {milliseconds(gap)} for the cuts ({percent(share)} of the step)"
    return Evidence(text, "step_counts")


def _calls(calls: float) -> str:
    return "1 call" if calls == 1 else f"{calls:.3g} calls"


def _cuts(sites: list[_breaks.Site]) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(
            f"{_places.short(site.place)}: {site.evidence()[0].text}",
            "graph_breaks",
            site.rows[0]["raw_file"],
            site.rows[0]["raw_line"],
        )
        for site in sites[:MOST_EVIDENCE]
    )
