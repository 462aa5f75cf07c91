"""
## What it finds
One call of a compiled callable that runs as many small graphs.

## Why it costs
Each graph is fused by itself and entered by itself: guards are checked, Python runs between them,
and what one graph writes the next one reads back from memory. It need not be slower than eager,
but it is slower than one graph would be.

## Evidence
More than three compiled regions for each call of a compiled callable in the profiler window, a
median of fewer than ten operations a graph, and graph breaks that explain them. The host time
between the regions is the cost.

A warning where that time is more than 15 % of the step; else information.

## What to do
Start with the first line listed: each break that goes merges two graphs.
`torch.compile(fullgraph=True)` on the block lists the first break that is left. It raises at a
break, so it is a test, not a setting for production.

## References
- https://docs.pytorch.org/docs/stable/compile/programming_model.fullgraph_true.html
- https://docs.pytorch.org/docs/stable/compile/programming_model.graph_breaks_index.html
- torch/_dynamo/graph_break_registry.json
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from traceview.rules import _breaks, _costs, _places
from traceview.rules._evidence import MOST_EVIDENCE, milliseconds, percent, plural
from traceview.rules._rows import first, first_rank, rows
from traceview.rules.finding import Cost, Evidence, Finding
from traceview.tables import Tables

CODE = "TV105"
NEEDS = frozenset({"graph_breaks", "compiles", "step_counts", "region_costs"})

#: One break makes two graphs and a second one three: that is gb-item's and its like's business.
MOST_GRAPHS_A_CALL = 3
#: Ten operations are about what one fused kernel holds; larger graphs lose little at the cut.
SMALL_GRAPH_OPS = 10
#: Below 15 % of the step, merging gains less than the cuts suggest.
DEAR_GAP_SHARE = 0.15


def check(tables: Tables) -> Iterator[Finding]:
    """At most one finding: the step as a whole is fragmented."""
    counts = first(tables, "step_counts", stance="compiled")
    calls = sum(row["calls_per_step"] or 0 for row in first_rank(rows(tables, "region_costs")))
    sizes = [row["graph_op_count"] for row in rows(tables, "compiles") if row["graph_op_count"]]
    sites = sorted(_breaks.resumable(tables), key=lambda site: -len(site.rows))
    if not (counts and counts["compiled_regions"] and calls and sizes and sites):
        return
    graphs = counts["compiled_regions"] / calls
    median = statistics.median(sizes)
    if graphs <= MOST_GRAPHS_A_CALL or median >= SMALL_GRAPH_OPS:
        return
    gap, step = _breaks.gap_ms(tables), _costs.step_ms(tables, "compiled")
    share = gap / step if gap is not None and step else None
    yield Finding(
        code=CODE,
        rule="gb-fragmented",
        severity="warning" if share is not None and share > DEAR_GAP_SHARE else "info",
        title=f"One call runs as {graphs:.0f} graphs of {median:.0f} operations each (median)",
        explanation=(
            f"Graph breaks at {plural(len(sites), 'place')} cut the code into pieces that cannot "
            "fuse with each other. The time given is what Python takes between them; what fusion "
            "across the cuts would save comes on top."
        ),
        cost=Cost(ms_per_step=gap, about=_breaks.GAP),
        confidence="measured",
        location=sites[0].place,
        evidence=(_counted(counts["compiled_regions"], calls, gap, share), *_cuts(sites)),
        what_to_do=(
            "Remove the breaks, this line first: each one that goes merges two graphs. "
            "torch.compile(..., fullgraph=True) on the block names the first one that is left."
        ),
        also_at=tuple(site.place for site in sites[1:] if site.place),
    )


def _counted(regions: float, calls: float, gap: float | None, share: float | None) -> Evidence:
    text = f"{regions:.3g} compiled regions per step, from {_calls(calls)} of compiled code"
    if gap is not None and share is not None:
        text += f", {milliseconds(gap)} between them ({percent(share)} of the step)"
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
