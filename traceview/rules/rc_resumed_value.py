"""
## What it finds
Code behind a graph break that is compiled again for every value that Python hands across the break:
a number that was read there, or how far a loop around it has come.

## Why it costs
Behind a break Dynamo compiles the rest of the function, with what was on Python's stack as its
arguments. A number or a `range` among them is a constant with a guard on it: one compile for each
value, until the recompile limit.

## Evidence
At least two recompiles of code behind a break whose deciding guard is on `___stack0` and the like,
or on the `range` that it iterates over.

A warning where compiling it again took a second or more, and 5 % of a job whose length is known, or
where the function met the recompile limit; else information.

## What to do
Take away the break, of which this is a consequence. Where it has to stay, move it out of the loop,
or compile what stands between two breaks as a function of its own.

## Settings
- `fewest_recompiles`: recompiles of one function from which on it is named.

## References
- https://docs.pytorch.org/docs/stable/compile/programming_model.graph_breaks_index.html
- https://docs.pytorch.org/docs/stable/compile/programming_model.recompilation.html
- torch/_dynamo/resume_execution.py
- torch/_dynamo/guards.py, `RANGE_ITERATOR_MATCH`
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules import _recompile_kinds, _recompiles
from traceview.rules._families import GRAPH_BREAKS
from traceview.rules._recompile_kinds import FEWEST_RECOMPILES
from traceview.rules.finding import Finding
from traceview.tables import Tables
from traceview.words.numbers import times

CODE = "TV215"
NEEDS = frozenset({"recompiles"})
FOLLOWS = GRAPH_BREAKS | {"cap-customop-no-fake"}


def check(tables: Tables, *, fewest_recompiles: float = FEWEST_RECOMPILES) -> Iterator[Finding]:
    """One finding a break and value."""
    for cause in _recompile_kinds.causes(tables, "resumed"):
        count = _recompile_kinds.recompiles(cause)
        if count < fewest_recompiles:
            continue
        at, cost = _recompiles.spot(tables, cause), cause.cost(tables)
        what = "the place in its loop" if cause.is_loop else cause.source
        values = cause.values()
        yield Finding(
            code=CODE,
            rule="rc-resumed-value",
            severity=_recompile_kinds.severity(tables, cause, cost),
            title=f"{_recompiles.opening(cause.function)} is compiled again {times(count)}: "
            f"{what} is a constant there",
            explanation=(
                "What Python hands across a graph break is compiled in as a constant and guarded."
                + (f" Values met: {values}." if values else "")
            ),
            cost=cost,
            confidence="derived",  # without the break the code in front of it is another, too
            location=at.place,
            inside=at.inside,
            about=cause.about,
            evidence=cause.evidence(),
            what_to_do=(
                "Take away the graph break at this line; or move it out of the loop, so that the "
                "code behind it is compiled once."
            ),
        )
