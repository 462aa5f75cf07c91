"""
## What it finds
A graph break several calls below the compiled function, which ends the graph of every caller too.

## Why it costs
Dynamo cannot resume inside a call. It ends the caller's graph before the call, makes the call in
Python, and compiles the function that was called by itself, where the same break is met again. One
break three calls deep cuts four functions: eight graphs instead of two, each entered by itself.

## Evidence
One line at which the compiles of at least three functions ended their graph. The cost is the
callers' share of what the profile shows of that break; the break itself would remain.

A warning where that is at least 5 % of the compiled step, or 0.05 ms and 1 % of it; else
information.

## What to do
Remove the break, and all of these cuts are gone. Where it has to stay, move it up into the compiled
function, or let Dynamo resume inside calls: `torch._dynamo.config.nested_graph_breaks = True`
(torch 2.13 has it, off by default). To keep a part free of breaks, run it under
`torch._dynamo.error_on_graph_break(True)`: a break in it is then an error, and elsewhere still
allowed.

## Settings
- `fewest_callers`: cuts in callers from which on it is reported.

## References
- https://docs.pytorch.org/docs/stable/compile/programming_model.graph_breaks_index.html
- torch/_dynamo/config.py, `nested_graph_breaks`
- torch/_dynamo/decorators.py, `error_on_graph_break`
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from traceview.rules import _breaks
from traceview.rules.kit import Evidence, Finding, Snippet, Tables, short, torch_before

CODE = "TV118"
NEEDS = frozenset({"break_sites"})
SEVERITIES = ("warning", "info")
FOLLOWS = _breaks.RULES

#: One caller is cut by any break in a helper; each further one adds two graphs more.
FEWEST_CALLERS = 2
_SETTING = "torch._dynamo.config.nested_graph_breaks = True"


def check(tables: Tables, *, fewest_callers: int = FEWEST_CALLERS) -> Iterator[Finding]:
    """One finding per line whose break ends the graphs of several callers."""
    for site in _breaks.resumable(tables):
        functions = sorted({code for row in site.rows for code in row["functions"]})
        callers = len(functions) - 1
        if callers < fewest_callers or site.strict:
            continue
        seen, confidence = _breaks.cost(tables, site)
        if seen.ms_per_step is not None:
            share = seen.ms_per_step * callers / len(functions)
            about = f"the callers' {callers} of {len(functions)} cuts; {seen.about}"
            seen = replace(seen, ms_per_step=share, about=about)
            confidence = "derived"
        old = torch_before(tables, (2, 13))
        resume = "" if old else f" Or let Dynamo resume inside calls: {_SETTING}."
        what_to_do, snippet = _breaks.at_call(
            site,
            "Remove the break, and all of these cuts are gone; or move it up into the compiled "
            f"function.{resume}",
            None if old else Snippet("python", _SETTING),
        )
        yield Finding(
            code=CODE,
            rule="gb-nested-call",
            severity=_breaks.severity(tables, seen),
            title=f"Graph break at {short(site.place)} also cuts its callers, {callers} times",
            explanation=(
                "Dynamo cannot resume inside a call, so each caller's graph ends before the call, "
                "and the function that was called is compiled by itself. One break ends "
                f"{len(functions)} graphs."
            ),
            cost=seen,
            confidence=confidence,
            location=site.place,
            inside=site.inside,
            about=site.about,
            evidence=(
                Evidence(f"{len(functions)} compiled functions end a graph there", "break_sites"),
                *site.evidence(),
            ),
            what_to_do=what_to_do,
            snippet=snippet,
            remedy=() if old else ("torch._dynamo.config.nested_graph_breaks=True",),
        )
