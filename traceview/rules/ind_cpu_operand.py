"""
## What it finds
A tensor on the CPU that compiled code indexes a tensor on the GPU with.

## Why it costs
Operators want their tensors on one device, but an index may lie on the CPU: ATen then copies it to
the GPU before it indexes, in every call, and the copy from pageable memory makes the host wait.
Nothing says so. Inductor has no code for operands on two devices, so it calls ATen's operator, with
the copy in it, and fuses nothing with it. No cudagraph can hold it.

## Evidence
Copies to the device that the profile shows inside operators of compiled code that are no copies,
and the inputs of Dynamo's graph on the CPU that are read at the same line, as the guards name them.
The cost is the copies' time on the device, and the time in which the device waits for them: that
line's part of what it waits for copies in compiled code. What fusing would save comes on top.

## What to do
Move the tensor once. A plain attribute of a module (`self.order = torch.arange(n)`) stays where it
is when the module moves: make it a buffer with `register_buffer`, with `persistent=False` where
checkpoints must not change. An argument: `.to(device)` before the loop. An index that is new in
each call: copy it from pinned memory with `non_blocking=True`, ahead of the call.

## Settings
- `least_share`: part of the compiled step, 0 to 1, that the copies must take.

## References
- https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html
- https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html
- torch/_inductor/lowering.py, `check_and_broadcast_indices`
- torch/nn/modules/module.py, `register_buffer`
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules._gain import at_first
from traceview.rules._recompiles import readable
from traceview.rules.kit import (
    MOST_EVIDENCE,
    Cost,
    Evidence,
    Finding,
    Location,
    Snippet,
    Tables,
    about,
    first_rank,
    line_of,
    milliseconds,
    percent,
    plural,
    rows,
    severity,
    short,
    step_ms,
)

CODE = "TV431"
NEEDS = frozenset({"host_operands", "step_counts"})
SEVERITIES = ("warning", "info")
GPU_ONLY = True

#: Less of a step is hard to tell from noise.
LEAST_SHARE = 0.02
_OWN = "self."
_BUFFERS = "_buffers"


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """At most one finding: all such operands, at the line that copies longest."""
    found, step = first_rank(rows(tables, "host_operands")), step_ms(tables, "compiled")
    spent = [row["copy_ms"] + row["wait_ms"] for row in found]
    if not found or not step or sum(spent) < least_share * step:
        return
    ms = sum(spent)
    sources = list(dict.fromkeys(name for row in found for name in row["sources"] or ()))
    names = list(map(readable, sources))
    named = f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else "".join(names)
    many = len(names) > 1
    places: list[Location] = [place for row in found if (place := line_of(row))]
    at = at_first(*places)
    ids = {row["compile_id"] for row in found}
    attributes = [
        name
        for name, source in zip(names, sources, strict=True)
        if name.startswith(_OWN) and _BUFFERS not in source
    ]
    yield Finding(
        code=CODE,
        rule="ind-cpu-operand",
        severity=severity(tables, ms),
        title=(
            f"{named or 'An index'}{at} {'are' if many else 'is'} on the CPU: every call copies "
            f"{'them' if many else 'it'} to the GPU, {percent(min(1.0, ms / step))} of the step"
        ),
        explanation=(
            f"{found[0]['op']} takes an index on the CPU for a tensor on the GPU. It copies the "
            "index in every call, and the host waits for the copy. Inductor generates no code for "
            "operands on two devices, so nothing fuses with it."
        ),
        cost=Cost(ms, None, "copies, and the time in which the GPU waits for them"),
        confidence="derived",
        location=places[0] if places else None,
        about=about(*(r for r in first_rank(rows(tables, "compiles")) if r["compile_id"] in ids)),
        evidence=tuple(
            Evidence(
                f"{row['op']}{f' at {short(place)}' if (place := line_of(row)) else ''}: "
                f"{plural(round(row['count']), 'transfer')} to the device per step, "
                f"{milliseconds(row['copy_ms'])}, and {milliseconds(row['wait_ms'])} of waiting",
                "host_operands",
            )
            for row in found[:MOST_EVIDENCE]
        ),
        what_to_do=_remedy(attributes, sources),
        snippet=(
            Snippet(
                "python", f'self.register_buffer("{_last(attributes[0])}", …, persistent=False)'
            )
            if attributes
            else None
        ),
        also_at=tuple(dict.fromkeys(places[1:4])),
    )


def _remedy(attributes: list[str], sources: list[str]) -> str:
    if attributes:
        return (
            f"{_last(attributes[0])} is a plain attribute, which .to(device) leaves on the CPU. "
            "Make it a buffer: register_buffer() in __init__, with persistent=False where "
            "checkpoints must not change."
        )
    if any(_BUFFERS in source for source in sources):
        return "Move the module that has the buffer to the GPU, once: module.to(device)."
    return (
        "Move it to the GPU once, with .to(device) before the first call. Where its values change "
        "in every call, copy it ahead of the call: x.pin_memory().to(device, non_blocking=True)."
    )


def _last(name: str) -> str:
    return name.rpartition(".")[2]
