"""
## What it finds
Attention that gets a causal mask as a tensor, where `is_causal=True` would do.

## Why it costs
With a mask a kernel computes all scores, reads the mask and hides half of what it has computed.
With `is_causal=True` it leaves that half out. On a GPU the mask also rules out FlashAttention.
`torch.compile` does not look at the values of a mask.

## Evidence
A call of `scaled_dot_product_attention` in Dynamo's graph, with a mask. At the script's end one
call is made again in eager, and its masks are looked at; where that can't be, all masks of that
size that are still alive. Where they hide what comes later and nothing else, and add no bias,
attention of the step's own sizes is timed with a mask and with `is_causal=True`, forward only. The
saving is that part of the attention in a compiled step. A mask that also hides padding counts as
causal if that call has none.

## What to do
Pass `is_causal=True`, and no mask. Where a mask also hides padding, look at
`torch.nn.attention.flex_attention`, or pack the sequences. `traceview try` makes the change in a
copy and compares the results.

## Settings
- `least_share`: part of the compiled step, 0 to 1, that the change must save.

## References
- https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html
- https://docs.pytorch.org/docs/stable/nn.attention.flex_attention.html
- torch/nn/attention/__init__.py
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traceview.rules._gain import IS_CAUSAL, Timed, inputs_named, locations
from traceview.rules.kit import (
    Evidence,
    Finding,
    Row,
    Snippet,
    Tables,
    first_rank,
    milliseconds,
    percent,
    plural,
    rows,
    severity,
    short,
    step_ms,
)
from traceview.torchtext.fx import ATTENTION, VIEW_WORDS, read_graph

CODE = "TV432"
NEEDS = frozenset({"shape_gains", "graphs", "kernel_groups", "step_counts"})
SEVERITIES = ("warning", "info")

#: A smaller gain is hard to tell from noise.
LEAST_SHARE = 0.05
#: In an attention's arguments: by its name, or after queries, keys and values.
_MASK = re.compile(r"attn_mask\s*=\s*(\w+)|^\((?:[^,=]+,){3}\s*(\w+)\s*[,)]")


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """At most one finding: all attention with such a mask."""
    gains = first_rank(rows(tables, "shape_gains", kind="attention", way=IS_CAUSAL))
    step, called = step_ms(tables, "compiled"), _calls(tables)
    if not gains or not step or not called:
        return
    groups = first_rank(rows(tables, "kernel_groups", stance="compiled", category="attention"))
    clock = groups[0]["clock"] if groups else None
    spent = sum(row["ms"] for row in groups if row["clock"] == clock)
    timed, count = Timed.of(tables, gains, spent), sum(row["shapes"] for row in gains)
    saved = timed.saved
    if saved < least_share * step:
        return
    places = locations(called)
    masks = list(dict.fromkeys(name for names in called.values() for name in names))
    padded = any(computed for names in called.values() for computed in names.values())
    named = f"{masks[0]}, a causal mask" if len(masks) == 1 else "a causal mask"
    measured = timed.said("with a mask", f"with {IS_CAUSAL}")
    yield Finding(
        code=CODE,
        rule="ind-causal-mask",
        severity=severity(tables, saved),
        title=(
            f"Attention at {short(places[0])} reads {named}: {IS_CAUSAL} saves "
            f"{milliseconds(saved)}, {percent(saved / step)} of the step"
        ),
        explanation=(
            "With a mask the kernel computes all scores and hides half of them. With "
            f"{IS_CAUSAL} it leaves that half out, and on a GPU FlashAttention can be chosen."
        ),
        cost=timed.cost("attention", measured),
        confidence="measured",
        location=places[0],
        evidence=(
            Evidence(f"attention of {plural(count, 'shape')} per step: {measured}", "shape_gains"),
        ),
        what_to_do=f"Pass {IS_CAUSAL} instead of the mask."
        + (" The graph computes it: keep it for batches with padding." if padded else ""),
        snippet=Snippet("python", f"F.{ATTENTION}(q, k, v, {IS_CAUSAL})"),
        also_at=tuple(places[1:4]),
    )


def _calls(tables: Tables) -> dict[str, dict[str, bool]]:
    """Line of attention in compiled code → the user's names of masks; is each computed there?"""
    found: dict[str, dict[str, bool]] = {}
    made_again = any(row["compared"] for row in first_rank(rows(tables, "end_checks")))
    graphs: list[Row] = first_rank(rows(tables, "graphs", kind="dynamo_output"))
    for row in graphs:
        if ATTENTION not in (text := row["text"] or ""):
            continue
        graph = read_graph(text)
        names = inputs_named(tables, row, graph)
        for node in graph.operations:
            given = _MASK.search(node.args) if ATTENTION in node.target else None
            mask = given and (given[1] or given[2])
            # Another name or a view; what the graph computes was looked at in a call made again.
            while mask and mask not in names and (behind := graph.nodes.get(mask)):
                if not behind.inputs or (behind.target and behind.word not in VIEW_WORDS):
                    break
                mask = behind.inputs[0]
            known = mask in names or (mask in graph.nodes and made_again)
            if mask and known and node.user_line:
                found.setdefault(node.user_line, {})[names.get(mask, mask)] = mask not in names
    return found
