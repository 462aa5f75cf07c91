"""
## What it finds
A Python value (str, bool, None, enum, number, or an optimizer's float setting) that compiled code
reads and that changes again and again.

## Why it costs
Such a value is compiled in as a constant with a guard on it. Each new one is a whole compile,
until the recompile limit; from then on new values run in eager.

## Evidence
At least two recompiles of one function whose deciding guard compares the same source with a
value, or checks which object it is (enums). A single change is not named: an int or float that
changes once is made symbolic, and two values that alternate are two compiled variants.

## What to do
Decide outside of the compiled function what the value decides inside; pass numbers as tensors.
For a learning rate under a compiled `optimizer.step`: make it a tensor and change it in place.

## References
- https://docs.pytorch.org/docs/stable/compile/programming_model.recompilation.html
- https://docs.pytorch.org/tutorials/recipes/compiling_optimizer_lr_scheduler.html
- torch/_dynamo/guards.py, `EQUALS_MATCH` and `ID_MATCH`
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traceview.rules import _recompiles
from traceview.rules._evidence import times
from traceview.rules.finding import Finding, Snippet
from traceview.tables import Tables

CODE = "TV204"
NEEDS = frozenset({"recompiles"})

#: The second recompile shows that the first one did not make the value symbolic.
FEWEST_RECOMPILES = 2
_TYPE = re.compile(r"type=<class '([\w.<>]+)'>")
_KINDS = ("value", "obj_id")


def check(tables: Tables) -> Iterator[Finding]:
    """One finding a function and source."""
    for cause in _recompiles.causes(tables):
        count = len({row["compile_key"] for row in cause.rows})
        if cause.row["kind"] not in _KINDS or count < FEWEST_RECOMPILES or _is_mode(cause):
            continue
        rate = cause.is_learning_rate
        yield Finding(
            code=CODE,
            rule="rc-python-constant",
            severity="warning",
            title=(
                f"{_recompiles.opening(cause.source)} changes and recompiled {cause.function} "
                f"{times(count)}"
            ),
            explanation=_explanation(cause),
            cost=cause.cost(tables),
            confidence="measured",
            location=_recompiles.place(tables, cause),
            evidence=cause.evidence(),
            what_to_do=_remedy(cause, rate),
            snippet=Snippet("python", "lr = torch.tensor(1e-3)  # instead of lr = 1e-3")
            if rate
            else None,
        )


def _remedy(cause: _recompiles.Cause, rate: bool) -> str:
    if rate:
        return _recompiles.TENSOR_RATE
    outside = f"Decide outside of {cause.function} what {cause.source} decides inside"
    if cause.row["kind"] == "obj_id":
        return (
            f"Pass the same object each time. If {cause.source} chooses (an enum, a flag), compile "
            "one function for each choice and choose outside."
        )
    if cause.is_choice:
        return f"{outside}: compile one function for each value and choose between them."
    return f"{outside}, or pass it as a tensor if it is a number that is only calculated with."


def _is_mode(cause: _recompiles.Cause) -> bool:
    """train() against eval() is two variants by nature."""
    return cause.source.endswith(".training")


def _explanation(cause: _recompiles.Cause) -> str:
    if cause.row["kind"] == "obj_id":
        kind = _TYPE.search(cause.row["guard"] or "")
        what = f", a {kind[1].rpartition('.')[2]}," if kind else ""
        return (
            f"Guards check that {cause.source}{what} is the very object that was traced; it was "
            "another one."
        )
    values = cause.values()
    met = f" Values met: {values}." if values else ""
    return f"The value of {cause.source} is compiled in as a constant and guarded.{met}"
