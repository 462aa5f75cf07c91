"""
## What it finds
Code after a graph break that is recompiled for every value that Python passes across the break: a
number that was read there, or how far a loop around it has come.

## Why it costs
After a break Dynamo compiles the rest of the function, with what was on Python's stack as its
arguments. A number or a `range` among them is a constant with a guard on it: one compile for each
value, up to the recompile limit.

## Evidence
At least two recompiles of code after a break whose deciding guard is on `___stack0` and the like,
or on the `range` that it iterates over.

A warning where the recompiles took at least a second, and at least 5 % of the job where its length
is known, or where the function hit the recompile limit. Otherwise information.

## What to do
Remove the break, which causes this. If it has to stay, move it out of the loop, or compile what
lies between two breaks as a function of its own.

## Settings
- `fewest_recompiles`: fewer recompiles of one function are not reported.

## References
- https://docs.pytorch.org/docs/stable/compile/programming_model.graph_breaks_index.html
- https://docs.pytorch.org/docs/stable/compile/programming_model.recompilation.html
- torch/_dynamo/resume_execution.py
- torch/_dynamo/guards.py, `RANGE_ITERATOR_MATCH`
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules import _breaks, _recompiles
from traceview.rules._recompiles import FEWEST_RECOMPILES
from traceview.rules.kit import Finding, Tables

CODE = "TV215"
NEEDS = frozenset({"recompile_causes"})
SEVERITIES = ("warning", "info")
FOLLOWS = _breaks.RULES


def check(tables: Tables, *, fewest_recompiles: float = FEWEST_RECOMPILES) -> Iterator[Finding]:
    """One finding a break and value."""
    for cause in _recompiles.causes(tables, "resumed", fewest_recompiles):
        is_loop = "_range_iter(" in (cause.row["source_name"] or "")  # around the graph break
        what = "the place in its loop" if is_loop else cause.source
        yield _recompiles.finding(
            tables,
            cause,
            code=CODE,
            rule="rc-resumed-value",
            title=f"{what} is a constant there",
            explanation=(
                "What Python passes across a graph break is compiled in as a constant and guarded."
                + cause.values_met()
            ),
            confidence="derived",  # without the break the code before it changes, too
            what_to_do=(
                "Remove the graph break at this line; or move it out of the loop, so that the code "
                "after it is compiled once."
            ),
        )
