"""
## What it finds
Compiled steps whose peak of allocated GPU memory is above that of eager steps.

## Why it costs
The batch that fits in eager may not fit compiled.

## Evidence
CUDA's caching allocator, reset before each timed block: the highest peak of the compiled blocks
is more than 1.1 times that of the eager blocks, and more than 64 MiB above it. Resident memory of
the process is not used, since it never shrinks.

## What to do
Look for tensors that eager code frees on the way (`del`, `pop`, rebinding) and a graph holds to
its end; leave cudagraphs out (each recorded size keeps its inputs); use `no_grad` for inference;
and for training try `torch._functorch.config.activation_memory_budget` below 1.

## Settings
- `most_ratio`: compiled over eager peak up to which nothing is said.
- `most_bytes`: bytes above the eager peak up to which nothing is said.

## References
- https://docs.pytorch.org/docs/stable/torch.compiler_cudagraph_trees.html
- https://docs.pytorch.org/docs/stable/torch_cuda_memory.html
- torch/_functorch/config.py, `activation_memory_budget`
- https://github.com/pytorch/pytorch/issues/122512
- https://github.com/pytorch/pytorch/issues/120381
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules import _places
from traceview.rules._rows import Row, first, first_rank, rows
from traceview.rules.finding import Cost, Evidence, Finding
from traceview.tables import Tables
from traceview.words.numbers import size

CODE = "TV420"
NEEDS = frozenset({"memory:eager", "memory:compiled"})
#: With gradients on, a graph keeps what a backward would need until its results are freed.
FOLLOWS = frozenset({"ap-grad-inference"})
GPU_ONLY = True

#: A tenth more is what fragmentation and alignment may explain.
MOST_RATIO = 1.1
#: On small peaks a tenth is one workspace of cuBLAS (32 MiB on recent GPUs, more with several).
MOST_BYTES = 64 * 2**20


def check(
    tables: Tables, *, most_ratio: float = MOST_RATIO, most_bytes: float = MOST_BYTES
) -> Iterator[Finding]:
    """At most one finding: the device on which the difference is largest."""
    peaks = _peaks(tables)
    devices = {device for _, device in peaks}
    pairs = [
        (peaks["compiled", device], peaks["eager", device], device)
        for device in sorted(devices)
        if ("compiled", device) in peaks and ("eager", device) in peaks
    ]
    more = [
        pair for pair in pairs if pair[0] > most_ratio * pair[1] and pair[0] - pair[1] > most_bytes
    ]
    if not more:
        return
    compiled, eager, device = max(more, key=lambda pair: pair[0] - pair[1])
    region = first(tables, "regions")
    yield Finding(
        code=CODE,
        rule="mem-peak-up",
        severity="warning",
        title=f"Compiled steps peak at {size(compiled)}, eager ones at {size(eager)}",
        explanation=(
            f"The compiled step needs {size(compiled - eager)} more on {device}. {_why(region)}"
        ),
        cost=Cost(about=f"{size(compiled - eager)} of device memory"),
        confidence="measured",
        location=_places.compile_call(region) if region else None,
        evidence=tuple(
            Evidence(f"{stance} blocks: peak {size(peak)} allocated on {device}", "memory")
            for stance, peak in (("compiled", compiled), ("eager", eager))
        ),
        what_to_do=(
            "Look for tensors that eager code frees on the way and a graph holds to its end; for "
            "training try torch._functorch.config.activation_memory_budget = 0.8."
        ),
    )


def _peaks(tables: Tables) -> dict[tuple[str, str], int]:
    """Highest allocator peak of the timed blocks by stance and device."""
    peaks: dict[tuple[str, str], int] = {}
    for row in first_rank(rows(tables, "memory", source="allocator")):
        if row["block_index"] is not None and row["peak_bytes"] is not None:
            key = (row["stance"], row["device"])
            peaks[key] = max(peaks.get(key, 0), row["peak_bytes"])
    return peaks


def _why(region: Row | None) -> str:
    mode = region["mode"] if region else None
    if mode in ("reduce-overhead", "max-autotune"):
        return (
            f'mode="{mode}" records cudagraphs, whose pool keeps the memory of every recorded size.'
        )
    return "A graph holds its inputs and what it saves for backward until it ends."
