"""
## What it finds
Steps that give GPU memory back to the driver and ask for it again: `torch.cuda.empty_cache()` in
every step, or an extension that allocates past torch.

## Why it costs
torch keeps what tensors free and hands it out again within a microsecond. Once the cache is empty,
the next step needs `cudaMalloc` for each large block, and `cudaFree` waits until the GPU has done
all of its work: the host can't run ahead, and fragmentation is no better for it.

## Evidence
`cudaFree` (or `cuMemUnmap`, of expandable segments) is called in at least half of the profiled
steps. The cost is the time that the device waits for calls of the allocator. Where an operator
needs memory and there is no more, torch empties its cache as well, and the call lies at the line of
that operator.

## What to do
Leave `empty_cache()` out of the step: it makes memory available to other processes only. Where the
GPU's memory is too small, `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`, or a smaller batch.

## References
- https://docs.pytorch.org/docs/stable/notes/cuda.html
- torch/cuda/memory.py
- c10/cuda/CUDACachingAllocator.cpp
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Location,
    Tables,
    first_rank,
    milliseconds,
    rows,
    severity,
    short,
)

CODE = "TV425"
NEEDS = frozenset({"host_stalls", "step_counts"})
SEVERITIES = ("warning", "info")
GPU_ONLY = True

#: What happens in fewer steps of a short window may be there by chance.
MOST_STEPS = 0.50
_FREES = ("cudaFree", "cuMemUnmap", "cuMemFree")


def check(tables: Tables) -> Iterator[Finding]:
    """At most one finding, at the line that gives most memory back."""
    found = first_rank(rows(tables, "host_stalls", kind="memory"))
    frees = [row for row in found if row["what"].startswith(_FREES)]
    if not frees or (frees[0]["steps"] or 0.0) < MOST_STEPS:
        return
    ms = sum(row["ms"] for row in found)
    places = [Location(row["file"], row["line"]) for row in frees if row["file"] and row["line"]]
    at = f" ({short(places[0])})" if places else ""
    calls: dict[str, float] = {}
    for row in found:
        calls[row["what"]] = calls.get(row["what"], 0.0) + (row["count"] or 0.0)
    yield Finding(
        code=CODE,
        rule="mem-driver-calls",
        severity=severity(tables, ms),
        title=f"Each step gives GPU memory back to the driver and asks for it again{at}",
        explanation=(
            f"The GPU waits {milliseconds(ms)} of a step for these calls, and each of them "
            "makes the host wait for the GPU."
        ),
        cost=Cost(ms, None, "time of a compiled step in which the GPU waits for the allocator"),
        confidence="measured",
        location=places[0] if places else None,
        evidence=(
            Evidence(
                ", ".join(f"{name}: {count:.3g} per step" for name, count in calls.items()),
                "host_stalls",
            ),
        ),
        what_to_do=(
            "Leave torch.cuda.empty_cache() out of the step: torch hands memory of freed tensors "
            "out again by itself. Where the line calls nothing of the kind, the GPU's memory is "
            "full: try PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True or a smaller batch."
        ),
        also_at=tuple(places[1:4]),
    )
