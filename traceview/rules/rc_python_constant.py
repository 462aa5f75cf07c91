"""
## What it finds
A Python value (str, bool, None, enum, number, an optimizer's float setting, or a tensor that some
calls leave out) that compiled code reads and that keeps changing.

## Why it costs
Such a value is compiled in as a constant with a guard on it. Every new one costs a whole compile,
up to the recompile limit. After that, calls with new values run in eager.

## Evidence
At least two recompiles of one function whose deciding guard compares the same source with a value,
or checks which object it is (enums). A single change is not reported: an int or float that changes
once becomes symbolic, and two values that alternate are two compiled variants.

A warning where the recompiles took at least a second, and at least 5 % of the job where its length
is known, or where the function hit the recompile limit. Otherwise information.

## What to do
Decide outside the compiled function what the value decides inside; pass numbers as tensors. For a
learning rate under a compiled `optimizer.step`: make it a tensor and change it in place.

## Settings
- `fewest_recompiles`: fewer recompiles of one function are not reported.

## References
- https://docs.pytorch.org/docs/stable/compile/programming_model.recompilation.html
- https://docs.pytorch.org/tutorials/recipes/compiling_optimizer_lr_scheduler.html
- torch/_dynamo/guards.py, `EQUALS_MATCH` and `ID_MATCH`
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec.structs import replace

from traceview.derive.facts.recompile_causes import A_TENSOR
from traceview.rules import _recompiles
from traceview.rules._recompiles import FEWEST_RECOMPILES, Cause
from traceview.rules.kit import Finding, Tables, first_rank, line_of, region_of, rows

CODE = "TV204"
NEEDS = frozenset({"recompile_causes"})
SEVERITIES = ("warning", "info")

#: What OneCycleLR and CyclicLR change along with the learning rate.
_MOMENTUM = re.compile(r"\.param_groups\[\d+\]\['(?:betas|momentum)'\]")
_TYPE = re.compile(r"type=<(?:class|enum|flag) '([\w.<>]+)'>")


def check(tables: Tables, *, fewest_recompiles: float = FEWEST_RECOMPILES) -> Iterator[Finding]:
    """One finding a function and source."""
    for cause in _recompiles.causes(tables, "constant", fewest_recompiles):
        changes, cost, at_most = cause.changes(), cause.cost(tables), ""
        # These remedies compile more, too: they save less than the recompiles took.
        if cause.is_learning_rate:
            changes = f"the optimizer's learning rate ({cause.source}) changes"
            at_most = "a graph with the rate in a tensor takes longer to compile"
        elif _chooses(cause):
            at_most = "a function for each value is compiled as often"
        if at_most:
            cost = replace(cost, about=f"{cost.about}; at most, since {at_most}")

        explanation = f"The value of {cause.source} is compiled in as a constant and guarded."
        explanation += cause.values_met()
        if cause.row["kind"] == "obj_id":
            kind = _TYPE.search(cause.row["guard"] or "")
            what = f", a {kind[1].rpartition('.')[2]}," if kind else ""
            explanation = (
                f"{cause.source}{what} is compiled in as a constant: guards check that it is the "
                "member that was traced, and it was a different one."
            )
        met = {row[key] for row in cause.rows for key in ("old", "new")} - {None}
        # An optimizer's step whose setting changes all the time, beyond the recompile limit.
        called = region_of(tables, cause.row["compile_key"])
        limited = _recompiles.frame_of(cause.row) in _recompiles.limited_frames(tables)
        of_step = ".param_groups[" in cause.source and not cause.is_learning_rate
        found = _recompiles.finding(
            tables,
            cause,
            code=CODE,
            rule="rc-python-constant",
            title=changes,
            explanation=explanation,
            cost=cost,
            # Each value needs code of its own, and something else changed where it has more.
            info=cause.is_choice and len(met) < cause.recompiles and not cause.is_refused(tables),
            confidence="derived" if at_most else "measured",
            what_to_do=_remedy(cause),
            remedy=(f"eager={called['name']}",) if called and limited and of_step else (),
            paste="lr = torch.tensor(1e-3)  # instead of lr = 1e-3"
            if cause.is_learning_rate
            else None,
        )
        # The scheduler that changes momentum or betas is made at a line of the user's.
        of_momentum = _MOMENTUM.search(cause.source)
        made = first_rank(rows(tables, "noted_lines", kind="momentum")) if of_momentum else []
        scheduler = line_of(made[0]) if len(made) == 1 else None
        if scheduler and found.location:
            also_at = (found.location, *found.also_at)
            found = replace(found, location=scheduler, also_at=also_at)
        yield found


def _chooses(cause: Cause) -> bool:
    """Whether no tensor can take its place: it decides which code runs."""
    return cause.row["kind"] == "obj_id" or cause.is_choice


def _remedy(cause: Cause) -> str:
    if cause.is_learning_rate:
        return _recompiles.TENSOR_RATE
    outside = f"Decide outside {cause.function} what {cause.source} decides inside"
    if any(row["old"] == A_TENSOR for row in cause.rows):
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
            f"calculated with. Otherwise {outside[:1].lower()}{outside[1:]}."
        )
    if (cause.row["source_name"] or "").startswith("G["):
        return (
            f"Pass {cause.source} as an argument, which torch makes symbolic when it changes "
            "(a value read from a global stays constant), or as a tensor."
        )
    return f"{outside}, or pass it as a tensor if it is a number that is only calculated with."
