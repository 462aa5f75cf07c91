"""
## What it finds
A cumulative sum or product, a running maximum, a sort or a top-k in compiled code along a dimension
whose elements lie apart in memory.

## Why it costs
Inductor has no code of its own for these where it is reported, and calls ATen's kernel. That goes
along one row of the dimension at a time. Where the next element is in another line of memory, each
step reads a line and uses one value of it; with a distance of 4,096 bytes, or a multiple, all these
lines share a few places of the cache and push each other out. A copy that lays the dimension's
elements together reads and writes once, and often pays.

## Evidence
The generated code calls the operator (`torch.ops.aten.cumsum`). At the script's end it is timed on
the step's own shapes and strides, as it is, with the elements together, and with copies there and
back in each call. The saving is the first two's difference as part of what the calls take.

## What to do
Keep the dimension that is worked along last and contiguous, where the tensor is made. Or, where
copying alone pays, in place: `x.movedim(0, -1).contiguous().cumsum(-1).movedim(-1, 0)`.

## Settings
- `least_share`: part of the compiled step, 0 to 1, that elements which lie together must save.

## References
- ATen/native/cpu/ReduceOpsKernel.cpp, `cpu_cum_base_kernel`
- torch/_inductor/lowering.py, `cumsum`
- https://docs.pytorch.org/docs/stable/generated/torch.movedim.html
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules._gain import Timed, at_first, slowest_lines
from traceview.rules.kit import (
    Evidence,
    Finding,
    Snippet,
    Tables,
    first_rank,
    milliseconds,
    percent,
    rows,
    severity,
    step_ms,
)
from traceview.torchtext.fx import op_name

CODE = "TV451"
NEEDS = frozenset({"shape_gains", "kernel_calls", "matched_kernels", "step_counts"})
SEVERITIES = ("warning", "info")

#: A smaller gain is hard to tell from noise.
LEAST_SHARE = 0.05


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """At most one finding: all such calls, at the slowest one's line."""
    together, copies = (
        first_rank(rows(tables, "shape_gains", kind="along", way=way))
        for way in ("contiguous", "copied")
    )
    step = step_ms(tables, "compiled")
    fallbacks = first_rank(rows(tables, "kernel_calls", category="fallback"))
    names = {op_name(row["kernel_name"] or "").replace(".", "::") for row in fallbacks}
    called = names.intersection(op for row in together for op in row["ops"])
    ran = [
        row
        for row in first_rank(rows(tables, "matched_kernels", stance="compiled"))
        if row["compile_id"] is not None and (row["cpu_op"] or row["name"]) in called
    ]
    if not together or not step or not ran:
        return
    timed = Timed.of(tables, together, sum(row["ms"] or 0.0 for row in ran))
    if timed.saved < least_share * step:
        return
    name, shape = together[0]["ops"][0].removeprefix("aten::"), together[0]["shape"]
    places = slowest_lines(ran)
    copied = sum(row["ms"] for row in copies)
    pays = copied < timed.base
    measured = timed.said("as it is", "with the elements together")
    yield Finding(
        code=CODE,
        rule="ind-strided-scan",
        severity=severity(tables, timed.saved),
        title=(
            f"{name}{at_first(*places)} works along a dimension whose elements lie apart: together "
            f"they would save {milliseconds(timed.saved)}, {percent(timed.saved / step)} of the "
            "step"
        ),
        explanation=(
            f"Compiled code calls ATen's {name} on {shape}, as eager does. Each element "
            "is in another line of memory than the one before, and often in the same place of the "
            "cache."
        ),
        cost=timed.cost("these calls", measured),
        confidence="measured",
        location=places[0] if places else None,
        evidence=(
            Evidence(f"aten::{name} of {shape}: {measured}", "shape_gains"),
            Evidence(f"{milliseconds(copied)} with copies there and back", "shape_gains"),
        ),
        what_to_do=(
            "Make that dimension the last and contiguous one where the tensor is made."
            + (" Copying it in each call pays as well." if pays else "")
        ),
        snippet=Snippet(
            "python", f"y = x.movedim(0, -1).contiguous().{name}(dim=-1).movedim(-1, 0)"
        )
        if pays and name.startswith("cum")
        else None,
        also_at=tuple(places[1:4]),
        weighs=True,
    )
