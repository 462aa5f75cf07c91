"""
## What it finds
fp32 matrix products on a GPU with TF32 tensor cores that leave them unused.

## Why it costs
PyTorch's default keeps fp32 products in full fp32. TF32 keeps fp32's range with a 10-bit mantissa
and is several times faster; compiled or not, such a script spends its time in the slow kernels.

## Evidence
torch's warning that TF32 is available but not enabled, or a matmul precision of `highest`, and
fp32 GEMM kernels (sgemm, simt, f32f32) of more than 20 % of the device time of the compiled
steps. The warning alone also appears for bf16 models and proves nothing. The cost is that time,
less what the products would take at half of the rate that bf16 reached on this device.

Information where that is little of a step, or where the device waits for launches for longer than
it works: a shorter product then saves nothing.

## What to do
`torch.set_float32_matmul_precision("high")`, then check that the result is still good enough.

## Settings
- `least_share`: part of the device time that fp32 products must take.

## References
- https://docs.pytorch.org/docs/stable/generated/torch.set_float32_matmul_precision.html
- https://docs.pytorch.org/docs/stable/notes/cuda.html
- torch/_inductor/compile_fx.py, `_warn_tf32_disabled`
- https://github.com/pytorch/pytorch/issues/175484
- https://github.com/huggingface/transformers/issues/43012
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traceview.rules import _costs, _gain
from traceview.rules._evidence import from_row
from traceview.rules._rows import Row, first_rank, rows
from traceview.rules.finding import Cost, Evidence, Finding, Snippet
from traceview.tables import Tables
from traceview.words.numbers import milliseconds, percent
from traceview.words.text import shorten

CODE = "TV401"
NEEDS = frozenset({"kernel_groups"})
GPU_ONLY = True

#: Below a fifth of the device time, even a free GEMM would gain less than it risks in accuracy.
LEAST_SHARE = 0.20
#: Names of cuBLAS and CUTLASS kernels that multiply fp32 without tensor cores.
_FP32 = re.compile(r"sgemm|simt|f32f32_f32f32|gemm_f32f32|ffma", re.IGNORECASE)
#: Tensor-core kernels, some of whose names match the above (s1688 is the TF32 instruction).
_TENSOR_CORES = re.compile(r"tf32|tensorop|s1688|s16816|bf16|f16|hmma|h1688", re.IGNORECASE)

_STARVED = (
    " They are not what a step waits for: the device waits for launches longer than it works."
)


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """At most one finding: the script as a whole."""
    groups = [
        row
        for row in first_rank(rows(tables, "kernel_groups", stance="compiled"))
        if row["clock"] == "device"
    ]
    slow = [row for row in groups if _is_fp32_gemm(row)]
    proof = _switched_off(tables)
    total = sum(row["ms"] for row in groups)
    ms = sum(row["ms"] for row in slow)
    if not slow or proof is None or ms <= least_share * total:
        return
    cost, starved = _saved(tables, ms), _gain.is_starved(tables)
    yield Finding(
        code=CODE,
        rule="ind-tf32-off",
        severity="info" if starved else _costs.severity(tables, cost.ms_per_step),
        title=f"fp32 matrix products take {percent(ms / total)} of the device time, without TF32",
        explanation=(
            "The GPU has TF32 tensor cores and PyTorch's default leaves them unused for fp32. "
            "Compiling does not change that: the same library kernels run."
            + (_STARVED if starved else "")
        ),
        cost=cost,
        confidence="derived",
        location=None,
        evidence=(
            proof,
            *(
                Evidence(f"{row['name']}: {milliseconds(row['ms'])} per step", "kernel_groups")
                for row in sorted(slow, key=lambda row: -row["ms"])[:3]
            ),
        ),
        what_to_do=(
            "Allow TF32, before the first step. It keeps 10 bits of each factor's mantissa: check "
            "that the result is still good enough."
        ),
        snippet=Snippet("python", 'torch.set_float32_matmul_precision("high")'),
    )


def _saved(tables: Tables, ms: float) -> Cost:
    """What TF32 saves of ``ms``: its tensor cores do half of what they do in bf16."""
    measured = {
        row["dtype"]: row["value"]
        for row in first_rank(rows(tables, "ceilings", kind="matmul"))
        if row["unit"] == "TFLOP/s"
    }
    full, half = measured.get("float32"), measured.get("bfloat16")
    if not full or not half or half <= 2 * full:
        return Cost(ms, None, "device time in fp32 GEMM kernels; TF32 saves most of it")
    about = (
        f"of {milliseconds(ms)} in fp32 GEMM kernels: fp32 reached {full:.3g} TFLOP/s here, and "
        f"TF32 does half of bf16's {half:.3g}"
    )
    return Cost(ms * (1 - 2 * full / half), None, about)


def _is_fp32_gemm(row: Row) -> bool:
    name = row["name"]
    gemm = row["category"] == "gemm"
    return gemm and bool(_FP32.search(name)) and not _TENSOR_CORES.search(name)


def _switched_off(tables: Tables) -> Evidence | None:
    warned = rows(tables, "warnings", kind="tf32")
    if warned:
        return from_row(shorten(warned[0]["message"]), "warnings", warned[0])
    for row in rows(tables, "environment", section="precision"):
        if "matmul_precision" in row["name"] and row["value"] == "highest":
            return Evidence(f"{row['name']} = highest", "environment")
    return None
