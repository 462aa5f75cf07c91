"""
## What it finds
A whole training step in one compiled function: `backward()` inside it, and usually the optimizer's
step too.

## Why it costs
Both end the graph by nature: the backward graph is compiled with the forward one and run by
autograd, the optimizer's step is a graph of its own. So nothing is gained, and everything else in
the function breaks, is guarded and is recompiled with it: `.item()` for a log, a list that grows, a
scheduler's learning rate.

## Evidence
A graph break of torch's type GB0123 or GB9186 at the line that calls backward, in a compiled
function. A compiled `optimizer.step()` alone breaks too, in torch's own code, and is no finding.

A warning if other lines of the function break the graph as well, or pieces of it were recompiled,
and compiling did not help; else information.

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

from collections.abc import Iterator

from msgspec.structs import replace

from traceview.rules import _breaks
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Snippet,
    Tables,
    about,
    milliseconds,
    outcome,
    plural,
    rows,
    short,
    step_ms,
)

CODE = "TV109"
NEEDS = frozenset({"break_sites"})
SEVERITIES = ("warning", "info")
EXPLAINS = frozenset({"graph_break", "idle_graph_break", "overheads_added"})


def check(tables: Tables) -> Iterator[Finding]:
    """One finding per compiled function that calls backward."""
    functions: dict[object, list[_breaks.Site]] = {}
    for site in _breaks.sites(tables):
        if site.place is not None:
            functions.setdefault((site.place.file, site.place.function), []).append(site)
    for sites in functions.values():
        backward = next((site for site in sites if _is(site, "backward")), None)
        if backward is None or backward.place is None:
            continue
        place, evidence = backward.place, [*backward.evidence()]
        others = [site for site in sites if not _is(site, "backward", "optimizer")]
        for site in others[:3]:
            said = site.evidence()[0]
            evidence.append(replace(said, text=f"{short(site.place)}: {said.text}"))
        pieces = frozenset().union(*(site.about for site in sites))
        again = [row for row in rows(tables, "recompile_causes") if about(row) & pieces]
        if again:
            text = f"pieces of it were recompiled {len(again)} times"
            evidence.append(Evidence(text, "recompile_causes"))

        # What a compiled model alone would take is not known.
        eager, compiled = (step_ms(tables, stance) for stance in ("eager", "compiled"))
        cost = Cost(about="what compiling only the model would save; not measured")
        if eager is not None and compiled is not None and compiled > eager:
            slower = f"compiled {milliseconds(compiled)}, eager {milliseconds(eager)}"
            more = "compiling only the model would save more"
            cost = Cost(compiled - eager, None, f"{slower}; {more}")
        troubled = outcome(tables) != "helped" and (others or again)
        yield Finding(
            code=CODE,
            rule="gb-optimizer-or-backward",
            severity="warning" if troubled else "info",
            title=(
                f"{place.function or 'A function'}() is compiled with backward() in it: "
                f"{plural(len(sites), 'line')} of it break the graph"
            ),
            explanation=(
                "backward() runs graphs that were compiled with the forward, and an optimizer's "
                "step is a graph of its own: neither fuses with the code around it. Compiling the "
                "whole step gains nothing over compiling the model, and breaks at everything else."
            ),
            cost=cost,
            confidence="derived" if cost.ms_per_step is not None else "heuristic",
            location=place,
            also_at=tuple(site.place for site in sites if site.place and site.place != place),
            about=pieces,
            evidence=tuple(evidence),
            what_to_do=(
                "Compile the model, not the function that trains it. The optimizer's step can be "
                "compiled by itself."
            ),
            snippet=Snippet("python", "model = torch.compile(model)"),
        )


def _is(site: _breaks.Site, *kinds: str) -> bool:
    return any(not set(kinds).isdisjoint(row["kinds"]) for row in site.rows)
