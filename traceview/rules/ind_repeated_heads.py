"""
## What it finds
Keys and values that are written out once for each head of the queries before attention, where
several heads share them (grouped-query or multi-query attention).

## Why it costs
`k[:, :, None].expand(b, h, n, t, d).reshape(b, h * n, t, d)` and `repeat_interleave` make a copy:
with 8 heads of queries for one of keys, 8 times as many bytes are written, and attention reads all
of them. An operator of attention runs in a library, so Inductor can't leave the copy out.

## Evidence
AOTAutograd's graph of the forward or of inference: an operator of attention takes a copy of an
expanded tensor. The cost is that of the generated kernels, forward and backward, that read or write
a tensor of that size; and of attention that memory limits, what it would read less.

## What to do
`scaled_dot_product_attention(q, k, v, enable_gqa=True)` with keys and values as they are. With one
query for each head and no mask (a decoding step), the heads that share keys can be rows of one
product: `q.view(b, h, n, d)`. Compare: not every backend has both.

## Settings
- `least_share`: part of the compiled step, 0 to 1, that this must take.

## References
- https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html
- https://github.com/pytorch/pytorch/pull/128898
- torch/nn/functional.py, `scaled_dot_product_attention`
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

CODE = "TV452"
NEEDS = frozenset({"repeated_heads", "step_counts"})
SEVERITIES = ("warning", "info")

#: Less is not worth another form of attention.
LEAST_SHARE = 0.05


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """At most one finding: all such copies, at the line that takes longest."""
    step = step_ms(tables, "compiled")
    found = [row for row in first_rank(rows(tables, "repeated_heads")) if row["ms"]]
    copying = sum(row["ms"] for row in found)
    reading = sum(row["spared_ms"] for row in found)
    ms = copying + reading
    if not step or not found or ms < least_share * step:
        return
    places = locations(row["line"] for row in found)
    times, copies = found[0]["times"], sum(row["copies"] for row in found)
    yield Finding(
        code=CODE,
        rule="ind-repeated-heads",
        severity=severity(tables, ms),
        title=(
            f"Keys and values{at_first(*places)} are written out {times} times for attention: "
            f"{milliseconds(ms)}, {percent(min(1.0, ms / step))} of the step"
        ),
        explanation=(
            f"{times} heads of the queries share one of keys and values. The graph has "
            f"{plural(copies, 'tensor')} in which each has its own: writing them takes "
            f"{milliseconds(copying)}"
            + (f", and reading them {milliseconds(reading)} more." if reading else ".")
        ),
        cost=Cost(ms, None, "kernels that make the copies, and what attention reads of them"),
        confidence="derived",
        location=places[0] if places else None,
        about=about(*of_keys(tables, {row["compile_key"] for row in found})),
        evidence=tuple(
            Evidence(
                f"{milliseconds(row['ms'])} of a step in {listed(row['kernel_names'][:2])}",
                "repeated_heads",
            )
            for row in found[:MOST_EVIDENCE]
        ),
        what_to_do=(
            "Give attention the keys and values as they are, with enable_gqa=True, and compare. "
            "With one query for each head and no mask, the heads that share keys can be rows of "
            "the same product."
        ),
        snippet=Snippet(
            "python",
            "y = F.scaled_dot_product_attention(q, k, v, enable_gqa=True)\n"
            "# or, of one query for each head (n heads share keys) and no mask:\n"
            "y = F.scaled_dot_product_attention(q.view(b, h, n, d), k, v)",
        ),
        also_at=tuple(places[1:4]),
        weighs=True,
    )
