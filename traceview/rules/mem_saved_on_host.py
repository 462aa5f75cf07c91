"""
## What it finds
Tensors saved for the backward that `torch.autograd.graph.save_on_cpu` copies to the host in the
forward and back in the backward, and that take much of a compiled step.

## Why it costs
Every tensor that the backward needs, weights among them, crosses the bus twice. The copies run on
the stream of the step's kernels, and the host waits for each of them, so nothing else runs
meanwhile. `torch.compile` saves fewer tensors, and copies those that it saves as eager does.

## Evidence
A line of the user's own that calls `save_on_cpu`, and as many copies to the host as back in the
profiled compiled step. The cost is the device time of both directions.

## What to do
Leave `save_on_cpu` away where the tensors fit into the device's memory; compiled code needs less of
it than eager. Where they do not, computing again is often faster than copying:
`torch._functorch.config.activation_memory_budget` below 1, or `torch.utils.checkpoint` around the
largest layers.

## Settings
- `least_share`: part of the compiled step, 0 to 1, that the copies must take.

## References
- https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.graph.save_on_cpu
- https://docs.pytorch.org/tutorials/intermediate/autograd_saved_tensors_hooks_tutorial.html
- torch/autograd/graph.py, `save_on_cpu`
- https://pytorch.org/blog/activation-checkpointing-techniques/
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.derive.time.details import TO_DEVICE, TO_HOST
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Tables,
    first,
    first_rank,
    line_of,
    milliseconds,
    percent,
    rows,
    severity_of_loss,
    short,
    size,
    step_ms,
)

CODE = "TV444"
NEEDS = frozenset({"account_details", "noted_lines", "step_counts"})
SEVERITIES = ("warning", "info")
EXPLAINS = frozenset({"copies_added"})
GPU_ONLY = True

#: Less of a step is what a batch takes, too.
LEAST_SHARE = 0.10


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """At most one finding, at the first such line."""
    step = step_ms(tables, "compiled")
    lines = [line_of(row) for row in first_rank(rows(tables, "noted_lines", kind="save_on_cpu"))]
    places = sorted({each for each in lines if each}, key=lambda each: (each.file, each.line))
    copies = first_rank(rows(tables, "account_details", stance="compiled", category="copy"))
    both = [
        [row for row in copies if row["what"] == direction] for direction in (TO_HOST, TO_DEVICE)
    ]
    # What is sent alone is a batch, what is read alone a result.
    ms = 2 * min(sum(row["ms"] or 0.0 for row in way) for way in both)
    if not step or not places or ms < least_share * step:
        return
    count = min(sum(row["count"] or 0.0 for row in way) for way in both)
    peaks = rows(tables, "memory", source="allocator", stance="compiled")
    peak = max((row["peak_bytes"] or 0 for row in peaks), default=0)
    memory = (first(tables, "runs") or {}).get("device_memory_bytes")
    room = f"a peak of {size(peak)} of {size(memory)}" if memory else f"a peak of {size(peak)}"
    yield Finding(
        code=CODE,
        rule="mem-saved-on-host",
        severity=severity_of_loss(tables, ms),
        title=(
            f"save_on_cpu at {short(places[0])} copies saved tensors to the host and back: "
            f"{milliseconds(ms)}, {percent(min(1.0, ms / step))} of the step"
        ),
        explanation=(
            "The copies are on the stream of the step's kernels, and the host waits for each of "
            "them. Compiled code saves fewer tensors than eager, and copies these as well."
        ),
        cost=Cost(ms, None, "device time of the copies, both ways"),
        confidence="derived",
        location=places[0],
        evidence=(
            Evidence(f"{count:.0f} copies each way: {milliseconds(ms)}", "account_details"),
            Evidence(f"compiled steps have {room}", "memory"),
        ),
        what_to_do=(
            "Leave it away if the tensors fit into the device's memory; if not, lower "
            "torch._functorch.config.activation_memory_budget."
        ),
        also_at=tuple(places[1:4]),
        weighs=True,
    )
