"""
## What it finds
fp32 matrix products on a GPU with TF32 tensor cores that they do not use.

## Why it costs
PyTorch's default keeps fp32 products in full fp32. TF32 keeps fp32's range with a 10-bit mantissa
and is several times faster; compiled or not, such a script spends its time in the slow kernels.

## Evidence
torch's warning that TF32 is available but not enabled, or a matmul precision of `highest`, and
fp32 GEMM kernels (sgemm, simt, f32f32) that take more than 20 % of the device time of the compiled
steps. The warning alone also appears for bf16 models and proves nothing. The cost is measured: the
step's heaviest products are timed with and without TF32 when the script has ended, on their own
shapes. Where that gains less than 5 %, nothing is reported. Recordings without that measurement
have an estimate: what the products would take at half of the rate that bf16 reached on this device.

Products of attention that runs as separate operators because its backends are switched off (TV424)
do not count: a fused kernel replaces them.

Information where it was not measured, where that is a small part of a step, or where the device
waits for launches for longer than it works: a shorter product then saves nothing. Also where
compiling hurts and eager spends less than half as long in such kernels: most of these products are
compiled code's own, and why it has them comes first.

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
from itertools import chain

from traceview.rules._gain import attention_lines, paced
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Snippet,
    Tables,
    first_rank,
    from_row,
    milliseconds,
    outcome,
    percent,
    plural,
    rows,
    severity,
    shorten,
)

CODE = "TV401"
NEEDS = frozenset({"kernel_groups"})
SEVERITIES = ("warning", "info")
GPU_ONLY = True

#: Below a fifth of the device time, even a free GEMM would gain less than it risks in accuracy.
LEAST_SHARE = 0.20
#: Less of the products' time is not worth their accuracy.
_LEAST_GAIN = 0.05
#: Names of cuBLAS and CUTLASS kernels that multiply fp32 without tensor cores.
_FP32 = re.compile(r"sgemm|simt|f32f32_f32f32|gemm_f32f32|ffma", re.IGNORECASE)
#: Tensor-core kernels, some of whose names match the above (s1688 is the TF32 instruction).
_TENSOR_CORES = re.compile(r"tf32|tensorop|s1688|s16816|bf16|f16|hmma|h1688", re.IGNORECASE)

_ALLOW = (
    "Allow TF32, before the first step. It keeps 10 bits of each factor's mantissa: check that the "
    "result is still good enough."
)
_SAME = (
    "The GPU has TF32 tensor cores, and PyTorch's default does not use them for fp32. Compiling "
    "does not change that: the same library kernels run."
)


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """At most one finding: the script as a whole."""
    groups = first_rank(rows(tables, "kernel_groups", stance="compiled", clock="device"))
    gemms = [row for row in groups if row["category"] == "gemm"]
    slow = [row for row in gemms if _is_slow(row["name"])]
    precisions = (
        Evidence(f"{row['name']} = highest", "environment")
        for row in rows(tables, "environment", section="precision", value="highest")
        if "matmul_precision" in row["name"]
    )
    warned = (
        from_row(shorten(row["message"]), "warnings", row)
        for row in rows(tables, "warnings", kind="tf32")
    )
    proof = next(chain(warned, precisions), None)
    total, ms = (sum(row["ms"] for row in part) for part in (groups, slow))
    ms -= _of_attention(tables)
    if not slow or proof is None or ms <= least_share * total:
        return
    measured = first_rank(rows(tables, "shape_gains", kind="gemm", way="TF32", dtype="float32"))
    if measured and measured[0]["share"] < _LEAST_GAIN:
        return
    cost = _saved(tables, ms)
    if measured:
        gain = measured[0]
        shapes = plural(gain["shapes"], "shape")
        took, less = milliseconds(gain["base_ms"]), milliseconds(gain["ms"])
        text = f"of {milliseconds(ms)} in fp32 GEMM kernels, measured on {shapes}: {took}"
        cost = Cost(ms * gain["share"], None, f"{text}, TF32 {less}")
    saved, pace = paced(tables, cost.ms_per_step or 0.0)
    cost = Cost(saved, None, cost.about + pace) if saved else cost
    explanation = _SAME
    groups = first_rank(rows(tables, "kernel_groups", stance="eager", clock="device"))
    before = sum(row["ms"] for row in groups if row["category"] == "gemm" and _is_slow(row["name"]))
    own = outcome(tables) == "hurt" and bool(groups) and 2 * before < ms
    if own:
        explanation = (
            f"Compiled code has {milliseconds(ms)} of such products, eager {milliseconds(before)}: "
            "find out first why it has more of them."
        )
    if not saved:
        explanation += " The step does not wait for them: the device mostly waits for launches."
    yield Finding(
        code=CODE,
        rule="ind-tf32-off",
        severity="info" if own or not (saved and measured) else severity(tables, cost.ms_per_step),
        title=f"fp32 matrix products take {percent(ms / total)} of the device time, without TF32",
        explanation=explanation,
        cost=cost,
        confidence="measured" if measured else "derived",
        location=None,
        evidence=(
            proof,
            *(
                Evidence(f"{row['name']}: {milliseconds(row['ms'])} per step", "kernel_groups")
                for row in sorted(slow, key=lambda row: -row["ms"])[:3]
            ),
        ),
        what_to_do=_ALLOW,
        snippet=Snippet("python", 'torch.set_float32_matmul_precision("high")'),
        remedy=("float32_matmul_precision=high",),
    )


def _is_slow(name: str) -> bool:
    """Whether a kernel multiplies fp32 without tensor cores."""
    return bool(_FP32.search(name)) and not _TENSOR_CORES.search(name)


def _of_attention(tables: Tables) -> float:
    """ms of such kernels in attention that runs as separate operators because of a switch."""
    lines = tables.once(attention_lines)
    batched = (
        rows(tables, "matched_kernels", stance="compiled", cpu_op="aten::bmm") if lines else []
    )
    mine = (row for row in first_rank(batched) if f"{row['file']}:{row['line']}" in lines)
    return float(sum(row["ms"] for row in mine if _is_slow(row["name"])))


def _saved(tables: Tables, ms: float) -> Cost:
    """What TF32 saves of ``ms``: its tensor cores do half of what they do in bf16."""
    measured = {
        row["dtype"]: row["value"]
        for row in first_rank(rows(tables, "ceilings", kind="matmul", unit="TFLOP/s"))
    }
    full, half = measured.get("float32"), measured.get("bfloat16")
    if not full or not half or half <= 2 * full:
        return Cost(ms, None, "device time in fp32 GEMM kernels; TF32 saves most of it")
    about = (
        f"of {milliseconds(ms)} in fp32 GEMM kernels: fp32 reached {full:.3g} TFLOP/s here, and "
        f"TF32 does half of bf16's {half:.3g}"
    )
    return Cost(ms * (1 - 2 * full / half), None, about)
