"""
## What it finds
Inference that computes something of the model's weights alone in every call: the weight of a
parametrization (`weight_norm`, `spectral_norm`), an adapter that is added to a weight, a table that
is made of a buffer.

## Why it costs
The result is the same in every call, as long as the weights are. The compiler can't know that they
stay: the graph has them as inputs. So each call reads all of them, computes, and writes the result,
which a product then reads. That traffic does not depend on the batch, and with small batches it may
be most of the work.

## Evidence
The inputs of the inference graph that are parameters of modules, or buffers that nothing writes
into, and the operations that read them, or what is made of them, and nothing else. A generated
kernel counts with the part of its calls that compute only such operations. Layouts and casts of
weights are findings of their own (TV408, TV429).

## What to do
Compute it once, after loading: `torch.nn.utils.parametrize.remove_parametrizations(layer,
"weight")` keeps the weight that a parametrization gives; `merge` of an adapter adds it to its
weight; a table belongs in a buffer. Or let Inductor freeze the weights before the first compiled
call: what is computed of them alone then becomes a constant, and later changes are not seen.

## Settings
- `least_share`: part of the compiled step, 0 to 1, that these kernels must take.

## References
- https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.parametrizations.weight_norm.html
- torch/nn/utils/parametrize.py, `remove_parametrizations`
- torch/_inductor/freezing.py
- https://github.com/pytorch/pytorch/issues/2176
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules._of_weights import FREEZING, of_weights
from traceview.rules.kit import (
    Cost,
    Finding,
    Snippet,
    Tables,
    milliseconds,
    plural,
    severity,
)

CODE = "TV447"
NEEDS = frozenset({"weight_work"})
SEVERITIES = ("warning", "info")

#: Less is not worth a change of how the model is loaded.
LEAST_SHARE = 0.05
_PARAMETRIZED = "aten._weight_norm_interface"


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """At most one finding: all such kernels, at the line of the one that takes longest."""
    if (found := of_weights(tables, "weight_work", least_share)) is None:
        return
    is_norm = any(_PARAMETRIZED in (row["ops"] or ()) for row in found.rows)
    yield Finding(
        code=CODE,
        rule="ind-weight-work",
        severity=severity(tables, found.ms),
        title=(
            f"{'weight_norm' if is_norm else 'Work on weights alone'}{found.where} is computed "
            f"again in every call: {milliseconds(found.ms)}, {found.share} of the step"
        ),
        explanation=(
            f"{plural(len(found.rows), 'generated kernel')} of this inference graph read "
            f"{found.weights}, and nothing else: the results are the same in every call."
        ),
        cost=Cost(found.ms, None, "kernels that read weights alone"),
        confidence="derived",
        location=found.places[0] if found.places else None,
        about=found.about,
        evidence=found.evidence("reads"),
        what_to_do=(
            "Compute it once, after loading: remove_parametrizations keeps the weight that a "
            "parametrization gives, and what is made of a buffer can be a buffer. Or freeze the "
            "weights: later changes of them are not seen then."
        ),
        snippet=Snippet(
            "python",
            "from torch.nn.utils import parametrize\n\n"
            "for layer in list(model.modules()):\n"
            '    if parametrize.is_parametrized(layer, "weight"):\n'
            '        parametrize.remove_parametrizations(layer, "weight")'
            if is_norm
            else "torch._inductor.config.freezing = True  # before the first call, under no_grad",
        ),
        remedy=FREEZING,
        also_at=tuple(found.places[1:4]),
        weighs=True,
    )
