"""
## What it finds
A Python value (str, bool, None, enum, number, an optimizer's float setting, or a tensor that some
calls leave out) that compiled code reads and that changes again and again.

## Why it costs
Such a value is compiled in as a constant with a guard on it. Each new one is a whole compile,
until the recompile limit; from then on new values run in eager.

## Evidence
At least two recompiles of one function whose deciding guard compares the same source with a
value, or checks which object it is (enums). A single change is not named: an int or float that
changes once is made symbolic, and two values that alternate are two compiled variants.

A warning where compiling it again took a second or more, and 5 % of a job whose length is known, or
where the function met the recompile limit; else information.

## What to do
Decide outside of the compiled function what the value decides inside; pass numbers as tensors.
For a learning rate under a compiled `optimizer.step`: make it a tensor and change it in place.

## Settings
- `fewest_recompiles`: recompiles of one function from which on it is named.

## References
- https://docs.pytorch.org/docs/stable/compile/programming_model.recompilation.html
- https://docs.pytorch.org/tutorials/recipes/compiling_optimizer_lr_scheduler.html
- torch/_dynamo/guards.py, `EQUALS_MATCH` and `ID_MATCH`
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec.structs import replace

from traceview.rules import _recompile_kinds, _recompiles
from traceview.rules._recompile_kinds import FEWEST_RECOMPILES
from traceview.rules.finding import Cost, Finding, Snippet
from traceview.tables import Tables
from traceview.words.numbers import times

CODE = "TV204"
NEEDS = frozenset({"recompiles"})

_TYPE = re.compile(r"type=<(?:class|enum|flag) '([\w.<>]+)'>")


def check(tables: Tables, *, fewest_recompiles: float = FEWEST_RECOMPILES) -> Iterator[Finding]:
    """One finding a function and source."""
    for cause in _recompile_kinds.causes(tables, "constant"):
        count = _recompile_kinds.recompiles(cause)
        if count < fewest_recompiles:
            continue
        at, cost = _recompiles.spot(tables, cause), _cost(tables, cause)
        yield Finding(
            code=CODE,
            rule="rc-python-constant",
            severity=_recompile_kinds.severity(tables, cause, cost),
            title=(f"{_subject(cause)} changes and recompiled {cause.function} {times(count)}"),
            explanation=_explanation(cause),
            cost=cost,
            confidence="derived" if _cured_at_a_cost(cause) else "measured",
            location=at.place,
            inside=at.inside,
            about=cause.about,
            evidence=cause.evidence(),
            what_to_do=_remedy(cause),
            snippet=Snippet("python", "lr = torch.tensor(1e-3)  # instead of lr = 1e-3")
            if cause.is_learning_rate
            else None,
        )


def _chooses(cause: _recompiles.Cause) -> bool:
    """Whether no tensor can take its place: it decides which code runs."""
    return cause.row["kind"] == "obj_id" or cause.is_choice


def _cured_at_a_cost(cause: _recompiles.Cause) -> bool:
    """Whether the remedy compiles more, too: then less is gained than these recompiles took."""
    return cause.is_learning_rate or _chooses(cause)


def _cost(tables: Tables, cause: _recompiles.Cause) -> Cost:
    cost = cause.cost(tables)
    if cause.is_learning_rate:
        at_most = "; at most, since a graph with the rate in a tensor takes longer to compile"
    elif _chooses(cause):
        at_most = "; at most, since a function for each value is compiled as often"
    else:
        return cost
    return replace(cost, about=cost.about + at_most)


def _subject(cause: _recompiles.Cause) -> str:
    if cause.is_learning_rate:
        return f"The optimizer's learning rate ({cause.source})"
    return _recompiles.opening(cause.source)


def _remedy(cause: _recompiles.Cause) -> str:
    if cause.is_learning_rate:
        return _recompiles.TENSOR_RATE
    outside = f"Decide outside of {cause.function} what {cause.source} decides inside"
    if cause.is_left_out:
        return (
            f"Pass a tensor as {cause.source} each time (zeros where there is none), or compile "
            "one function for calls with it and one for calls without, and choose between them."
        )
    if _chooses(cause):
        return f"{outside}: compile one function for each value and choose between them."
    if ".param_groups[" in cause.source:
        return (
            "Keep this setting of the optimizer constant (OneCycleLR and CyclicLR change momentum "
            "or betas unless they get cycle_momentum=False), or leave its step in eager."
        )
    if cause.source.startswith("self."):
        return (
            f"Keep {cause.source} in a buffer tensor and change it in place, if it is only "
            f"calculated with. Else: {outside[:1].lower()}{outside[1:]}."
        )
    if (cause.row["source_name"] or "").startswith("G["):
        return (
            f"Hand {cause.source} in as an argument, which torch makes symbolic when it changes "
            "(what is read from a global stays a constant), or as a tensor."
        )
    return f"{outside}, or pass it as a tensor if it is a number that is only calculated with."


def _explanation(cause: _recompiles.Cause) -> str:
    if cause.row["kind"] == "obj_id":
        kind = _TYPE.search(cause.row["guard"] or "")
        what = f", a {kind[1].rpartition('.')[2]}," if kind else ""
        return (
            f"{cause.source}{what} is compiled in as a constant: guards check that it is the very "
            "member that was traced, and it was another one."
        )
    values = cause.values()
    met = f" Values met: {values}." if values else ""
    return f"The value of {cause.source} is compiled in as a constant and guarded.{met}"
