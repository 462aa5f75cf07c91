"""
## What it finds
`flex_attention` whose score function sets scores to minus infinity, without a `block_mask`.

## Why it costs
The kernel computes every score and then drops those of masked places. A `block_mask` tells it which
blocks of 128 by 128 places have nothing to compute, and it skips them. For a window of 256 in a
sequence of 8,192 that is 95 % of the work.

## Evidence
Dynamo's graph: the call has no block mask, and its `score_mod` returns
`torch.where(…, score, -inf)`. Where the condition depends on the places of query and key alone, it
is evaluated at five by five places of each block; blocks without any that is kept could be
skipped. The saving is their share of the attention's kernels.

## What to do
Return the condition from a `mask_mod`, and call
`create_block_mask(mask_mod, None, None, Q_LEN, KV_LEN)` once, outside of the step. Pass the result
as `block_mask=`, and leave in the `score_mod` what changes scores, if anything.

## Settings
- `least_share`: part of the compiled step, 0 to 1, that skipping must save.

## References
- https://docs.pytorch.org/docs/stable/nn.attention.flex_attention.html
- https://pytorch.org/blog/flexattention/
- torch/nn/attention/flex_attention.py, `create_block_mask`
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules._gain import location
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Snippet,
    Tables,
    first_rank,
    from_row,
    milliseconds,
    percent,
    plural,
    rows,
    severity,
    short,
    step_ms,
)
from traceview.torchtext.flex import dense_flex_attention

CODE = "TV435"
NEEDS = frozenset({"graphs", "kernel_groups", "step_counts"})
SEVERITIES = ("warning", "info")

#: Less is not worth a change of the code.
LEAST_SHARE = 0.05
_NAME = "flex_attention"


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """At most one finding: all such calls."""
    step = step_ms(tables, "compiled")
    groups = first_rank(rows(tables, "kernel_groups", stance="compiled"))
    spent = sum(row["ms"] or 0.0 for row in groups if _NAME in row["name"])
    if not step or not spent:
        return
    calls = [
        (call, row)
        for row in first_rank(rows(tables, "graphs", kind="dynamo_output"))
        if _NAME in (row["text"] or "")
        for call in dense_flex_attention(row["text"])
    ]
    known = [call.kept for call, _ in calls if call.kept is not None]
    if not known:
        return
    kept = sum(known) / len(known)
    saved = min(spent, step) * (1 - kept)
    if saved < least_share * step:
        return
    places = list(dict.fromkeys(filter(None, (location(call.line or "") for call, _ in calls))))
    at = f" at {short(places[0])}" if places else ""
    yield Finding(
        code=CODE,
        rule="ind-dense-flex-attention",
        severity=severity(tables, saved),
        title=(
            f"flex_attention computes scores that its score_mod{at} masks: a block_mask would save "
            f"about {milliseconds(saved)}, {percent(saved / step)} of the step"
        ),
        explanation=(
            f"{percent(1 - kept)} of the blocks of scores are set to minus infinity and computed "
            "all the same. With a block_mask the kernel skips them."
        ),
        cost=Cost(saved, None, f"{percent(1 - kept)} of {milliseconds(spent)} in flex_attention"),
        confidence="derived",
        location=places[0] if places else None,
        evidence=(
            from_row(
                f"{plural(len(calls), 'call')} without block_mask, blocks that are needed: "
                f"{percent(kept)}",
                "graphs",
                calls[0][1],
            ),
            Evidence(f"kernels of flex_attention: {milliseconds(spent)} a step", "kernel_groups"),
        ),
        what_to_do=(
            "Return the condition from a mask_mod, make a block mask of it once, outside of the "
            "step, and pass that instead of the score_mod."
        ),
        snippet=Snippet(
            "python",
            "block_mask = create_block_mask(mask_mod, None, None, Q_LEN, KV_LEN)\n"
            "flex_attention(query, key, value, block_mask=block_mask)",
        ),
        also_at=tuple(places[1:4]),
        weighs=True,
    )
