"""
## What it finds
Inference that casts the model's weights to another dtype in every call: under autocast, or of
weights that are stored as whole numbers.

## Why it costs
Eager autocast keeps the casts of weights until its context ends. A compiled graph has them inside
and makes them again in each call: it reads every weight in float32 and writes it in the lower
precision. That traffic does not depend on the batch, and with small batches it is most of the work.

Weights stored in int8 save traffic only where the product itself reads them. Inductor fuses
`weight.to(x.dtype) * scale` into one kernel, but a library computes the product: the kernel writes
the whole weight in the wider dtype, and the product reads that.

## Evidence
Parameters, and buffers of whole numbers, that the captured inference graph casts, and the generated
kernels that take one and fill a buffer of the same sizes and another dtype. The cost is their time
in the profile, or the weights' part of the elements where they do other work as well.

## What to do
Convert the model once, after loading it: `model.to(torch.bfloat16)`. Autocast may stay around the
call: it then has no weights left to cast. Norms and other operations that autocast keeps in float32
read their weights in the lower precision then, so compare the outputs. Stored as whole numbers:
make the wider weight once, if there is memory for it. Otherwise let a Triton template compute the
product (`mode="max-autotune-no-cudagraphs"`), into which Inductor can fuse the cast, or use a
quantization library's operators.

## Settings
- `least_share`: part of the compiled step, 0 to 1, that the casts must take.

## References
- https://docs.pytorch.org/docs/stable/amp.html
- torch/amp/autocast_mode.py, `cache_enabled`
- torch/_inductor/graph.py
- https://docs.pytorch.org/ao/stable/workflows/inference.html
- https://github.com/meta-pytorch/gpt-fast/issues/218
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules._of_weights import FREEZING, of_weights
from traceview.rules.kit import (
    Cost,
    Finding,
    Snippet,
    Tables,
    first_rank,
    line_of,
    rows,
    severity_of_loss,
    short,
)
from traceview.torchtext.dtypes import is_integer

CODE = "TV429"
NEEDS = frozenset({"weight_copies"})
SEVERITIES = ("warning", "info")
EXPLAINS = frozenset({"fusion", "casts_saved"})

#: Another precision has to be worth comparing the outputs.
LEAST_SHARE = 0.10


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """At most one finding: all weights, at autocast's line, or the one of most casts."""
    if not (found := of_weights(tables, "weight_copies", least_share, why="dtype")):
        return
    dtype, stored = (found.rows[0][key] for key in ("dtype", "stored"))
    quantised = is_integer(stored)
    contexts = (line_of(row) for row in first_rank(rows(tables, "noted_lines", kind="autocast")))
    asked = [] if quantised else list(filter(None, contexts))
    places = [*asked[:1], *found.places[:2], *asked[1:]]
    made = f"made of {stored}" if quantised else f"cast to {dtype}"
    what = f"Weights{found.where} are {made}"
    if asked:
        what = f"Autocast at {short(asked[0])} casts weights to {dtype}"
    yield Finding(
        code=CODE,
        rule="ind-weight-casts",
        severity=severity_of_loss(tables, found.ms),
        title=f"{what} in every call: {found.share} of the step",
        explanation=(
            f"The compiled graph casts {found.weights}, in each call. "
            + (
                f"The product does not read {stored}: a kernel before it writes all of the weight "
                f"in {dtype}, so that storing it in {stored} saves memory and costs time."
                if quantised
                else "Eager autocast casts each of them once, and keeps it until the autocast "
                "context ends."
            )
        ),
        cost=Cost(found.ms, None, "kernels that cast weights, as profiled"),
        confidence="derived",
        location=places[0] if places else None,
        about=found.about,
        evidence=found.evidence("casts"),
        what_to_do=(
            f"Make the weight in {dtype} once, after loading, if there is memory for it. If not, "
            "let a Triton template compute the product: Inductor can fuse the cast into one."
            if quantised
            else "For inference, convert the model once, after loading it, and compare the "
            "outputs. Autocast may stay."
        ),
        snippet=Snippet(
            "python",
            'model = torch.compile(model, mode="max-autotune-no-cudagraphs")'
            if quantised
            else f"model = model.to(torch.{dtype})",
        ),
        remedy=FREEZING,
        also_at=tuple(places[1:4]),
        weighs=True,
    )
