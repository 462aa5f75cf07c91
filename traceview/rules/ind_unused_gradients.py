"""
## What it finds
A compiled backward that computes gradients which nothing asks for, such as those of a model's
weights where the script wants the gradient of its input alone.

## Why it costs
Eager's autograd computes what a call of `torch.autograd.grad` or `backward(inputs=…)` needs and
leaves the rest out. `torch.compile` makes the backward when it compiles the call, for all inputs
and parameters that require a gradient then. It is one function, so it computes all of them, and
those that are not asked for are dropped. The gradient of a linear layer's weight is a product as
large as that of its input.

## Evidence
The step's backward runs more products, convolutions or attentions compiled than in eager, the
compiled backward returns more than one gradient, and the user's source asks for some by
`torch.autograd.grad`. The cost is what these operators take longer than in eager.

## What to do
Say before the first call what needs no gradient: `model.requires_grad_(False)`, or call the model
on detached weights. Where the same model is also trained, compile it once more for this use.

## Settings
- `least_share`: part of the compiled step, 0 to 1, that the additional work must take.

## References
- https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html
- https://docs.pytorch.org/docs/stable/notes/autograd.html#setting-requires-grad
- torch/_functorch/partitioners.py
- torch/autograd/graph.py
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from traceview.derive.origins.work import LIBRARY
from traceview.rules._gain import location
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Location,
    Snippet,
    Tables,
    first_rank,
    milliseconds,
    percent,
    plural,
    rows,
    severity_of_loss,
    short,
    step_ms,
)
from traceview.torchtext.fx import read_graph

CODE = "TV434"
NEEDS = frozenset({"matched_kernels", "waterfall_rows", "graphs", "backward_calls"})
SEVERITIES = ("warning", "info")
EXPLAINS = frozenset({"library_choice", "other_kernels"})

#: Less of a step is within what two profiles of the same work differ by.
LEAST_SHARE = 0.05


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """At most one finding: all operators that the compiled backward runs and eager doesn't."""
    step = step_ms(tables, "compiled")
    asked = first_rank(rows(tables, "backward_calls", call="grad"))
    if not step or not asked or not (more := _more(tables)):
        return
    texts = [row["text"] or "" for row in first_rank(rows(tables, "graphs", kind="aot_backward"))]
    given = max((len(read_graph(text).outputs) for text in texts), default=0)
    if given < 2:
        return
    lost = {
        group: sum(
            row["ms"] or 0.0
            for row in first_rank(rows(tables, "waterfall_rows", group_id=group))
            if row["effect"] in EXPLAINS
        )
        for group in more
    }
    ms = sum(lost.values())
    if ms < least_share * step:
        return
    eager, compiled = (sum(more[group][side] for group in more) for side in ("eager", "compiled"))
    place = location(more[max(more, key=lambda group: lost[group])]["line"])
    call = Location(asked[0]["file"], asked[0]["line"])
    yield Finding(
        code=CODE,
        rule="ind-unused-gradients",
        severity=severity_of_loss(tables, ms),
        title=(
            f"The compiled backward computes gradients that {short(call)} doesn't ask for: "
            f"{milliseconds(ms)}, {percent(ms / step)} of the step"
        ),
        explanation=(
            "Eager's autograd computes what torch.autograd.grad needs. The compiled backward "
            "computes the gradients of everything that required one when it was compiled."
        ),
        cost=Cost(ms, None, "library operators of the backward, compiled less eager time"),
        confidence="derived",
        location=call,
        evidence=(
            Evidence(
                f"library operators in the backward per step: {compiled:.0f} compiled, "
                f"{eager:.0f} in eager",
                "matched_kernels",
            ),
            Evidence(f"the compiled backward returns {plural(given, 'gradient')}", "graphs"),
        ),
        what_to_do=(
            "Turn off gradients for what needs none before the first call. If the model is trained "
            "as well, compile a copy that shares its weights for this use."
        ),
        snippet=Snippet("python", "model.requires_grad_(False)"),
        also_at=(place,) if place else (),
        weighs=True,
    )


def _more(tables: Tables) -> dict[int, dict[str, Any]]:
    """Match groups that run more library operators in a compiled backward than in eager.

    With how many in each stance, and a ``line``.
    """
    groups: dict[int, dict[str, Any]] = {}
    for row in first_rank(rows(tables, "matched_kernels")):
        if row["category"] in LIBRARY:
            new = {"eager": 0.0, "compiled": 0.0, "line": f"{row['file']}:{row['line']}"}
            group = groups.setdefault(row["group_id"], new | {"_backward": False})
            group[row["stance"]] += row["count"] or 0.0
            group["_backward"] |= (row["aot_id"] or "").endswith("backward")
    return {
        number: group
        for number, group in groups.items()
        if group["_backward"] and group["compiled"] > group["eager"] > 0
    }
