"""
## What it finds
Inference on a CPU that copies the weights of convolutions into another memory layout in every call.

## Why it costs
Inductor computes convolutions with channels last. A weight in the default layout is copied before
each call, and its bytes do not depend on the batch: with small batches the copies take longer than
what fusion saves.

## Evidence
The generated code: kernels that fill a buffer of a weight's sizes with other strides, which a
convolution then takes. The cost is the time of these kernels in the profile, of those that do other
work as well the weight's part of the elements.

## What to do
`torch._inductor.config.freezing = True` before the first compiled call, under `torch.no_grad()` and
with the model in `eval()`: weights become constants, which are laid out (and folded with batch
norm) once, while compiling. Later changes of the weights are then not seen.

## Settings
- `least_share`: part of the compiled step, 0 to 1, that the copies must take.

## References
- https://docs.pytorch.org/docs/stable/torch.compiler_troubleshooting.html
- torch/_inductor/config.py, `freezing`
- torch/_inductor/freezing.py
- torch/_inductor/graph.py, `decide_layout_opt`
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules._of_weights import FREEZING, of_weights
from traceview.rules.kit import Cost, Finding, Snippet, Tables, severity_of_loss

CODE = "TV408"
NEEDS = frozenset({"weight_copies"})
SEVERITIES = ("warning", "info")
EXPLAINS = frozenset({"fusion", "library_choice"})

#: Freezing fixes the weights: it has to be worth that.
LEAST_SHARE = 0.10


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """At most one finding: all weights, at the line of the kernel that copies most."""
    if not (found := of_weights(tables, "weight_copies", least_share, why="layout")):
        return
    yield Finding(
        code=CODE,
        rule="ind-weight-layout",
        severity=severity_of_loss(tables, found.ms),
        title=(
            f"Weights of convolutions{found.where} are copied into another layout in every call: "
            f"{found.share} of the step"
        ),
        explanation=(
            f"Inductor computes convolutions with channels last, and copies {found.weights}, for "
            "that in each call."
        ),
        cost=Cost(found.ms, None, "kernels that lay out weights, as profiled"),
        confidence="derived",
        location=found.places[0] if found.places else None,
        about=found.about,
        evidence=found.evidence("copies"),
        what_to_do=(
            "For inference, let Inductor freeze the weights before the first compiled call, under "
            "torch.no_grad() and with the model in eval(): they are then laid out once, and later "
            "changes to them are not seen."
        ),
        snippet=Snippet("python", "torch._inductor.config.freezing = True"),
        remedy=FREEZING,
        also_at=tuple(found.places[1:4]),
        weighs=True,
    )
