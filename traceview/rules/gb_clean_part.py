"""
## What it finds
Graph breaks at several lines of a compiled callable, around a module or function that holds most of
the step and has no break.

## Why it costs
Every break ends a graph, runs Python and enters another graph. Compiled by itself, the part without
breaks is one graph for each of its calls, and the code around it runs in eager without any of that.

## Evidence
The lines window of eager steps shows which lines run below which; the stacks of the graph breaks
show which of them break. The part is the line right below a broken one with the most kernel time
of an eager step, backward included. The cost is what is seen of all breaks in a compiled step, less
what compiling saves in the code around the part.

It is reported from two broken lines on (a single one is better removed), where the part takes most
of an eager step, is entered less often than the step enters graphs now, and the cost is at least
5 % of the step, or 0.05 ms and 1 % of it.

## What to do
Compile the part instead of the whole: `module.compile()` where it is made, or a decorator.

## References
- https://docs.pytorch.org/docs/stable/compile/programming_model.where_to_apply_compile.html
- torch/nn/modules/module.py, `Module.compile`
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules import _breaks, _edits
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Location,
    Tables,
    first,
    milliseconds,
    percent,
    plural,
    rows,
    severity,
    short,
)

CODE = "TV120"
NEEDS = frozenset({"break_sites", "break_costs", "clean_parts", "step_counts"})
SEVERITIES = ("warning",)
EXPLAINS = frozenset({"graph_break", "idle_graph_break", "overheads_added"})

#: With a single line that breaks, the advice is to remove that break.
FEWEST_LINES = 2
#: What is left in eager must be the smaller part.
MOST = 0.50


def check(tables: Tables) -> Iterator[Finding]:
    """At most one finding: the largest part."""
    part = first(tables, "clean_parts")
    counts = first(tables, "step_counts", stance="compiled")
    sites = [site for site in _breaks.sites(tables) if site.place]
    seen = next((r["all_ms"] for r in rows(tables, "break_costs") if r["all_ms"] is not None), None)
    if not (part and part["callee"] and counts and counts["compiled_regions"] and seen):
        return
    lost = max(0.0, part["rest_eager_ms"] - (part["rest_compiled_ms"] or 0.0))
    gain = seen - lost
    few = len(sites) < FEWEST_LINES or part["calls"] >= counts["compiled_regions"]
    if few or part["share"] <= MOST or gain <= 0 or severity(tables, gain) == "info":
        return
    callee, place = part["callee"], Location(part["file"], part["line"])
    lines, broken = plural(len(sites), "line"), ", ".join(short(site.place) for site in sites[:3])
    taken, around = milliseconds(part["eager_ms"]), milliseconds(part["rest_eager_ms"])
    yield Finding(
        code=CODE,
        rule="gb-clean-part",
        severity="warning",
        title=f"{callee} has no graph break and holds {percent(part['share'])} of the step",
        explanation=(
            f"Graph breaks at {lines} around it cut the compiled callable into "
            f"{counts['compiled_regions']:.3g} graphs a step. Compiled by itself, {callee} takes "
            f"{part['calls']:.3g}."
        ),
        cost=Cost(
            ms_per_step=gain,
            about="at most: what is seen of all graph breaks, less what compiling saves around it",
        ),
        confidence="derived",
        location=Location(part["file"], part["edit_line"]),
        also_at=(place,),
        about=frozenset().union(*(site.about for site in sites)),
        evidence=(
            Evidence(f"{short(place)} and what it calls: {taken} of an eager step", "clean_parts"),
            Evidence(f"the code around it: {around} in eager", "clean_parts"),
            Evidence(f"{milliseconds(seen)} a step for breaks at {broken}", "break_costs"),
        ),
        what_to_do=(
            f"Compile {callee} where it is made, and remove torch.compile from the callable around "
            "it: then nothing breaks. Or remove the breaks, which keeps all of it compiled."
        ),
        snippet=_edits.beside(part),
    )
