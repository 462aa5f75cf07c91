"""
## What it finds
Compiled steps whose peak of allocated GPU memory is above that of eager steps.

## Why it costs
The batch that fits in eager may not fit compiled.

## Evidence
CUDA's caching allocator, reset before each timed block: the highest peak of the compiled blocks
is more than 1.1 times that of the eager blocks, and more than 64 MiB above it. Resident memory of
the process is not used, since it never shrinks. It is information where the compiled peak is below
half of the device's memory: a batch that is twice as large still fits.

## What to do
Look for tensors that eager code frees early (`del`, `pop`, rebinding) and a graph keeps until it
ends; turn cudagraphs off (each recorded size keeps its inputs); use `no_grad` for inference; and
for training try `torch._functorch.config.activation_memory_budget` below 1.

## Settings
- `most_ratio`: compiled over eager peak up to which the rule is silent.
- `most_bytes`: bytes above the eager peak up to which the rule is silent.
- `warn_share`: part of the device's memory from which the compiled peak is a warning.

## References
- https://docs.pytorch.org/docs/stable/torch.compiler_cudagraph_trees.html
- https://docs.pytorch.org/docs/stable/torch_cuda_memory.html
- torch/_functorch/config.py, `activation_memory_budget`
- https://github.com/pytorch/pytorch/issues/122512
- https://github.com/pytorch/pytorch/issues/120381
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Tables,
    compile_call,
    first,
    first_rank,
    rows,
    size,
)

CODE = "TV420"
NEEDS = frozenset({"memory:eager", "memory:compiled"})
SEVERITIES = ("warning", "info")
#: With gradients on, a graph keeps what a backward would need until its results are freed; what is
#: saved on the host goes there when the whole graph has run.
FOLLOWS = frozenset(
    {"ap-grad-inference", "ind-partial-write", "ind-slower-library", "mem-saved-on-host"}
)
GPU_ONLY = True

#: Fragmentation and alignment may explain a tenth more.
MOST_RATIO = 1.1
#: On small peaks a tenth is one workspace of cuBLAS (32 MiB on recent GPUs, more with several).
MOST_BYTES = 64 * 2**20
WARN_SHARE = 0.5
_BUDGET = ("torch._functorch.config.activation_memory_budget=0.8",)


def check(
    tables: Tables,
    *,
    most_ratio: float = MOST_RATIO,
    most_bytes: float = MOST_BYTES,
    warn_share: float = WARN_SHARE,
) -> Iterator[Finding]:
    """At most one finding: the device on which the difference is largest."""
    peaks: dict[str, dict[str, int]] = {}
    for row in first_rank(rows(tables, "memory", source="allocator")):
        if None not in (row["block_index"], row["device"], row["stance"], row["peak_bytes"]):
            mine = peaks.setdefault(row["device"], {})
            mine[row["stance"]] = max(mine.get(row["stance"], 0), row["peak_bytes"])
    more = [
        (peak["compiled"] - peak["eager"], device)
        for device, peak in sorted(peaks.items())
        if {"eager", "compiled"} <= peak.keys()
        and peak["compiled"] > most_ratio * peak["eager"]
        and peak["compiled"] - peak["eager"] > most_bytes
    ]
    if not more:
        return
    most, device = max(more, key=lambda pair: pair[0])
    compiled, eager = peaks[device]["compiled"], peaks[device]["eager"]
    region = first(tables, "regions")
    memory = (first(tables, "runs") or {}).get("device_memory_bytes")
    why = "A graph keeps its inputs and what it saves for the backward until it ends."
    if region and region["mode"] in ("reduce-overhead", "max-autotune"):
        why = (
            f'mode="{region["mode"]}" records cudagraphs, whose pool keeps the memory of every '
            "recorded size."
        )
    yield Finding(
        code=CODE,
        rule="mem-peak-up",
        severity="info" if memory and compiled < warn_share * memory else "warning",
        title=f"Compiled steps peak at {size(compiled)}, eager ones at {size(eager)}",
        explanation=f"The compiled step needs {size(most)} more on {device}. {why}",
        cost=Cost(about=f"{size(most)} of device memory"),
        confidence="measured",
        location=compile_call(region),
        evidence=(
            Evidence(f"compiled blocks: peak {size(compiled)} allocated on {device}", "memory"),
            Evidence(f"eager blocks: peak {size(eager)} allocated on {device}", "memory"),
        ),
        what_to_do=(
            "Look for tensors that eager code frees early; for training try "
            "torch._functorch.config.activation_memory_budget = 0.8."
        ),
        remedy=_BUDGET if rows(tables, "graphs", kind="aot_joint") else (),
    )
