"""
## What it finds
Attention that is computed in steps, as a product, a softmax and a product, and that nothing turns
into one operator.

## Why it costs
`scaled_dot_product_attention` keeps a block of the scores in the processor's own memory. In steps
all scores are written and read: as many as queries times keys, of each head. Inductor knows
attention in many forms and calls that operator for them. It does not know them all:
`nn.MultiheadAttention` with `need_weights=True`, which is its default, has another one, whether or
not the weights are used.

## Evidence
AOTAutograd's graph of the forward or of inference: two batched products, with a softmax between
them whose result nothing else reads. The cost is that of the generated kernels, forward and
backward, that read or write a tensor of the scores' size. With one operator they are gone, and the
products take about as long as before; a mask or a bias may need another kernel.

## What to do
`torch.nn.functional.scaled_dot_product_attention(q, k, v)`, with `is_causal` or `attn_mask` for
what is added to the scores, and `scale` where that is not one over the root of the size.
`nn.MultiheadAttention`: pass `need_weights=False`. For other changes of the scores there is
`torch.nn.attention.flex_attention`.

## Settings
- `least_share`: part of the compiled step, 0 to 1, that these kernels must take.

## References
- https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html
- https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html
- torch/_inductor/fx_passes/fuse_attention.py
- torch/nn/functional.py, `multi_head_attention_forward`
- https://github.com/pytorch/pytorch/issues/100347
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules._gain import at_first, locations
from traceview.rules._starts import of_keys
from traceview.rules.kit import (
    MOST_EVIDENCE,
    Cost,
    Evidence,
    Finding,
    Snippet,
    Tables,
    about,
    first_rank,
    milliseconds,
    percent,
    plural,
    rows,
    severity,
    step_ms,
)
from traceview.words.text import listed

CODE = "TV448"
NEEDS = frozenset({"plain_attention", "step_counts"})
SEVERITIES = ("warning", "info")

#: Less is not worth another form of attention.
LEAST_SHARE = 0.10


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """At most one finding: all such attention, at the line that takes longest."""
    step = step_ms(tables, "compiled")
    found = [row for row in first_rank(rows(tables, "plain_attention")) if row["ms"]]
    ms = sum(row["ms"] for row in found)
    if not step or not found or ms < least_share * step:
        return
    places = locations(row["line"] for row in found)
    calls = sum(row["calls"] for row in found)
    sizes = "×".join(map(str, found[0]["scores"]))
    yield Finding(
        code=CODE,
        rule="ind-plain-attention",
        severity=severity(tables, ms),
        title=(
            f"Attention{at_first(*places)} is computed in steps: {milliseconds(ms)}, "
            f"{percent(min(1.0, ms / step))} of the step, in kernels that read or write all scores"
        ),
        explanation=(
            f"Scores of up to {sizes} go through a softmax between two batched products, "
            f"{plural(calls, 'time')} in the graph. No operator of attention is called for them."
        ),
        cost=Cost(ms, None, "kernels that read or write as many elements as the scores have"),
        confidence="derived",
        location=places[0] if places else None,
        about=about(*of_keys(tables, {row["compile_key"] for row in found})),
        evidence=tuple(
            Evidence(
                f"scores of {'×'.join(map(str, row['scores']))}, {plural(row['calls'], 'time')}: "
                f"{milliseconds(row['ms'])} of a step in {listed(row['kernel_names'][:2])}",
                "plain_attention",
            )
            for row in found[:MOST_EVIDENCE]
        ),
        what_to_do=(
            "Call scaled_dot_product_attention, which computes it block by block; for "
            "nn.MultiheadAttention pass need_weights=False. Compare the results."
        ),
        snippet=Snippet(
            "python",
            "y, _ = self.attention(q, k, v, need_weights=False)\n"
            "# or, of your own attention:\n"
            "y = torch.nn.functional.scaled_dot_product_attention(q, k, v)",
        ),
        also_at=tuple(places[1:4]),
        weighs=True,
    )
