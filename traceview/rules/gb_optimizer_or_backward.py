"""
## What it finds
A whole training step in one compiled function: `backward()` inside it, and as a rule the
optimizer's step too.

## Why it costs
Both end the graph by nature: the backward graph is compiled with the forward one and run by
autograd, the optimizer's step is a graph of its own. So nothing is won, and what else stands in the
function breaks, is guarded and is compiled again with it: `.item()` for a log, a list that grows, a
scheduler's learning rate.

## Evidence
A graph break of torch's type GB0123 or GB9186 at the line that calls backward, in a compiled
function. A compiled `optimizer.step()` alone breaks too, in torch's own code, and is no finding.

A warning where other lines of the function break the graph as well, or pieces of it were compiled
again, and compiling did not help; else information.

## What to do
Compile the model and, by itself, the optimizer's step; leave the loop around them in Python:
`model = torch.compile(model)`.

## References
- https://docs.pytorch.org/docs/stable/compile/programming_model.where_to_apply_compile.html
- https://docs.pytorch.org/tutorials/recipes/compiling_optimizer.html
- https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0123.html
- torch/_dynamo/variables/tensor.py, `TensorVariable.method_backward`
- torch/optim/optimizer.py, `Optimizer.profile_hook_step`
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from traceview.rules import _break_kinds, _breaks, _costs, _places
from traceview.rules._rows import Row, rows
from traceview.rules.finding import Cost, Evidence, Finding, Severity, Snippet
from traceview.tables import Tables
from traceview.words.numbers import milliseconds, plural

CODE = "TV109"
NEEDS = frozenset({"graph_breaks"})
EXPLAINS = frozenset({"graph_break", "idle_graph_break", "overheads_added"})


def check(tables: Tables) -> Iterator[Finding]:
    """One finding a compiled function that calls backward."""
    functions: dict[object, list[_breaks.Site]] = {}
    for site in _breaks.sites(tables):
        if site.place is not None:
            functions.setdefault((site.place.file, site.place.function), []).append(site)
    for sites in functions.values():
        backward = [site for site in sites if _is(site, _break_kinds.is_backward)]
        if backward:
            others = [
                site
                for site in sites
                if not _is(site, _break_kinds.is_backward)
                and not _is(site, _break_kinds.is_optimizer)
            ]
            yield _finding(tables, backward[0], sites, others)


def _is(site: _breaks.Site, kind: _breaks.Kind) -> bool:
    return any(kind(row) for row in site.rows)


def _finding(
    tables: Tables,
    backward: _breaks.Site,
    sites: Sequence[_breaks.Site],
    others: Sequence[_breaks.Site],
) -> Finding:
    place = backward.place
    assert place is not None
    about = frozenset().union(*(site.about for site in sites))
    again = [
        row
        for row in rows(tables, "recompiles")
        if row["order"] in (0, None) and _places.about(row) & about
    ]
    cost = _cost(tables)
    return Finding(
        code=CODE,
        rule="gb-optimizer-or-backward",
        severity=_severity(tables, others, again),
        title=(
            f"{place.function or 'A function'}() is compiled with backward() in it: "
            f"{plural(len(sites), 'line')} of it cut the graph"
        ),
        explanation=(
            "backward() runs graphs that were compiled with the forward, and an optimizer's step "
            "is a graph of its own: neither fuses with what stands around it. Compiling the step "
            "as a whole gains nothing over compiling the model, and breaks at everything else."
        ),
        cost=cost,
        confidence="derived" if cost.ms_per_step is not None else "heuristic",
        location=place,
        also_at=tuple(site.place for site in sites if site.place and site.place != place),
        about=about,
        evidence=(*backward.evidence(), *_beside(others, again)),
        what_to_do=(
            "Compile the model, not the function that trains it. The optimizer's step may be "
            "compiled by itself."
        ),
        snippet=Snippet("python", "model = torch.compile(model)"),
    )


def _severity(tables: Tables, others: Sequence[_breaks.Site], again: Sequence[Row]) -> Severity:
    unhelped = _costs.outcome(tables) != "helped"
    return "warning" if unhelped and (others or again) else "info"


def _cost(tables: Tables) -> Cost:
    """What the compiled step is slower by; what a compiled model alone would take is not known."""
    eager, compiled = (_costs.step_ms(tables, stance) for stance in ("eager", "compiled"))
    if eager is None or compiled is None or compiled <= eager:
        return Cost(about="what compiling the model alone would save on top; not measured")
    about = (
        f"compiled {milliseconds(compiled)} against eager {milliseconds(eager)}; what a compiled "
        "model would save comes on top"
    )
    return Cost(ms_per_step=compiled - eager, about=about)


def _beside(others: Sequence[_breaks.Site], again: Sequence[Row]) -> Iterator[Evidence]:
    for site in others[:3]:
        found = site.evidence()[0]
        yield replace(found, text=f"{_places.short(site.place)}: {found.text}")
    if again:
        yield Evidence(f"pieces of it were compiled again {len(again)} times", "recompiles")
