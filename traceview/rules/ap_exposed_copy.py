"""
## What it finds
Copies between a GPU and pinned memory that the GPU's other work waits for.

## Why it costs
A GPU copies and computes at the same time, if the copy is on a stream of its own and neither side
waits for the other. On the current stream, or on one that waits for the step's kernels before it
copies, a batch is sent while nothing else runs, and compiling makes that no shorter.

## Evidence
The profiled step: copies from or into pinned memory during which no other kernel ran, less what the
profiled step took longer than the timed ones. Hiding saves no more than the rest of the step takes.

## What to do
Send the next batch while the step runs: before its kernels are queued, begin the copy on a stream
of its own, and let the current stream wait for it when the batch is needed. That stream must not
wait for the current one, except for the last use of the buffer that it writes into
(`record_stream`, or an event). Send less: a smaller dtype, cast on the device.

## Settings
- `least_share`: part of the compiled step, 0 to 1, that hiding must save.

## References
- https://docs.pytorch.org/docs/stable/notes/cuda.html#use-pinned-memory-buffers
- https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html
- torch/cuda/streams.py
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.derive.time.details import TO_DEVICE, TO_HOST
from traceview.rules._gain import at_first
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Location,
    Snippet,
    Tables,
    first,
    first_rank,
    milliseconds,
    percent,
    rows,
    severity_of_loss,
    step_ms,
)

CODE = "TV436"
NEEDS = frozenset({"step_counts", "account_details"})
SEVERITIES = ("warning", "info")
GPU_ONLY = True

#: Less is not worth another stream.
LEAST_SHARE = 0.10


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """At most one finding, at the copy that takes longest."""
    step = step_ms(tables, "compiled")
    counts = first(tables, "step_counts", stance="compiled")
    if not step or not counts or not counts["exposed_copies_ms"]:
        return
    # A host that the profiler slows down begins its copies late.
    exposed = min(step, counts["exposed_copies_ms"]) - max(0.0, counts["step_ms"] - step)
    saved = min(exposed, step - exposed)
    if saved < least_share * step:
        return
    copies = [
        row
        for row in first_rank(rows(tables, "account_details", stance="compiled", category="copy"))
        if row["what"] in (TO_DEVICE, TO_HOST) and row["file"] and row["line"] is not None
    ]
    copies.sort(key=lambda row: -row["ms"])
    places = [Location(row["file"], row["line"]) for row in copies]
    at = at_first(*places)
    yield Finding(
        code=CODE,
        rule="ap-exposed-copy",
        severity=severity_of_loss(tables, saved),
        title=(
            f"Nothing else runs on the GPU during the copies{at}: {milliseconds(exposed)}, "
            f"{percent(exposed / step)} of the step"
        ),
        explanation=(
            "They are from or into pinned memory, so they could run while the GPU computes: the "
            "next batch's during this step."
        ),
        cost=Cost(saved, None, "copies without other work, no more than the rest of the step"),
        confidence="derived",
        location=places[0] if places else None,
        evidence=(
            Evidence(
                f"{milliseconds(exposed)} of {milliseconds(step)} in copies while no kernel runs",
                "step_counts",
            ),
        ),
        what_to_do=(
            "Begin the next copy before this step's kernels, on a stream of its own that does not "
            "wait for them, and wait for it where the batch is used."
        ),
        snippet=Snippet(
            "python",
            "with torch.cuda.stream(copies):  # before the step\n"
            "    batch = host.to(device, non_blocking=True)\n"
            "...  # the step, on the batch before\n"
            "torch.cuda.current_stream().wait_stream(copies)\n"
            "batch.record_stream(torch.cuda.current_stream())",
        ),
        also_at=tuple(places[1:4]),
        weighs=True,
    )
