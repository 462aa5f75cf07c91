"""
## What it finds
Matrix products on a GPU whose rows do not begin at multiples of 16 bytes, and that would take less
time if they did.

## Why it costs
cuBLAS's fast kernels load 16 bytes at once, and need every row of a matrix to begin at a multiple
of that. Rows of 1,025 bfloat16 numbers, or a slice `table[:, 1:]` of such a table, leave kernels
that load one or two numbers at a time, and no Tensor Memory Accelerator. Inductor pads products
whose own sizes are no multiples of 8 where that gains; a slice with gaps between its rows it leaves
as it is, and eager code pads nothing.

## Evidence
At the script's end the step's largest products are timed on random data, as they are and with all
rows at multiples of 16 bytes. The saving is that part of the products in a compiled step. The lines
are those of products in the compiled graphs that have such an operand.

## What to do
Copy a slice once where it is made (`.contiguous()`, or `.clone()`), outside of the step. Give a
table, a vocabulary or a hidden layer a size that is a multiple of 8 (of 4 in float32): 50,304 in
place of 50,257, and mask or ignore what was added.

## Settings
- `least_share`: part of the compiled step, 0 to 1, that aligned rows must save.

## References
- https://docs.pytorch.org/docs/stable/generated/torch.Tensor.contiguous.html
- https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/index.html
- https://docs.nvidia.com/cuda/cublas/#tensor-core-usage
- torch/_inductor/fx_passes/pad_mm.py
- https://github.com/pytorch/pytorch/issues/115344
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules._gain import ALIGNED, Timed, at_first, locations
from traceview.rules.kit import (
    Evidence,
    Finding,
    Location,
    Owners,
    Snippet,
    Tables,
    first_rank,
    milliseconds,
    percent,
    rows,
    severity,
    step_ms,
)
from traceview.torchtext.dtypes import size_of
from traceview.torchtext.fx import read_graph, tensor_sizes, tensor_strides

CODE = "TV443"
NEEDS = frozenset({"shape_gains", "accounting", "step_counts"})
SEVERITIES = ("warning", "info")
GPU_ONLY = True

#: A smaller gain is hard to tell from noise.
LEAST_SHARE = 0.05
_KIND = "gemm"
_ALIGNMENT = 16
_PRODUCTS = frozenset({"aten.mm", "aten.addmm", "aten.bmm", "aten.baddbmm"})


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """At most one finding: all products of the step."""
    gains = first_rank(rows(tables, "shape_gains", kind=_KIND, way=ALIGNED))
    step = step_ms(tables, "compiled")
    if not gains or not step:
        return
    timed = Timed.of_category(tables, gains, _KIND)
    saved = timed.saved
    if saved < least_share * step:
        return
    places, gaps = _places(tables)
    at = at_first(*places)
    measured = timed.said("as they are", "with aligned rows")
    yield Finding(
        code=CODE,
        rule="ind-unaligned-product",
        severity=severity(tables, saved),
        title=(
            f"A matrix product{at} has rows that are not aligned to 16 bytes: aligned ones would "
            f"save {milliseconds(saved)}, {percent(saved / step)} of the step"
        ),
        explanation=(
            "The library's fast kernels load 16 bytes at once and need each row aligned. "
            + (
                "The operand is a slice with gaps between its rows, which torch.compile leaves "
                "where it is."
                if gaps
                else "A size of the operand is no multiple of that."
            )
        ),
        cost=timed.cost("matrix products", measured),
        confidence="measured",
        location=places[0] if places else None,
        evidence=(Evidence(f"products on this step's shapes: {measured}", "shape_gains"),),
        what_to_do=(
            "Copy the slice once where it is made, outside of the step."
            if gaps
            else "Round the size up to a multiple of 8 (4 in float32), and mask or ignore what "
            "was added."
        ),
        snippet=Snippet("python", "features = table[:, 1:].contiguous()") if gaps else None,
        also_at=tuple(places[1:4]),
        weighs=True,
    )


def _places(tables: Tables) -> tuple[list[Location], bool]:
    """Lines of products with such an operand, and whether one has gaps between its rows.

    One with gaps that the compiled function is given was made before: its call comes first.
    """
    called, lines, gaps = dict[Location, None](), dict[str | None, None](), False
    compiles = {row["compile_key"]: row for row in first_rank(rows(tables, "compiles"))[::-1]}
    owners = tables.once(Owners)
    for row in first_rank(rows(tables, "graphs", kind="post_grad")):
        if (compiled := compiles.get(row["compile_key"])) is None:
            continue
        graph = read_graph(row["text"] or "")
        products = (node for node in graph.operations if node.op in _PRODUCTS)
        for node, name in [(each, name) for each in products for name in each.inputs]:
            operand = graph.nodes[name]
            sizes, strides = tensor_sizes(operand.meta) or (), tensor_strides(operand.meta) or ()
            # (step, size) of its dimensions, the innermost first
            steps = sorted((s, n) for s, n in zip(strides, sizes, strict=False) if n > 1)
            unit = _ALIGNMENT // size_of(operand.dtype) if operand.dtype else 1
            if not any(step != 1 and step % unit for step, _ in steps):
                continue
            lines[node.user_line] = None
            if len(steps) < 2 or steps[0][0] != 1 or steps[1][0] <= steps[0][1]:
                continue  # a row ends where the next one begins
            gaps = True
            given = not graph.nodes[graph.base(name)[0]].args
            if given and (caller := owners.caller(compiled)):
                called[caller] = None
    return list(dict.fromkeys([*called, *locations(lines)])), gaps
