"""
## What it finds
A matrix that is multiplied with a batch, `torch.matmul(a, b)` with `a` of two dimensions and `b` of
three or more, and that the library multiplies with each part of the batch by itself.

## Why it costs
`matmul` expands the matrix along the batch and calls `bmm`. That is as many products as the batch
has parts, each with few columns, which the library can't do at its full rate. Laid next to each
other, these columns make one large product. Inductor leaves both to the library, so compiling
changes nothing.

## Evidence
Inductor's graph calls `bmm` with an operand that has the stride 0 along the batch. At the script's
end that product is timed on the step's own shapes and strides, as it is and as one product, which
copies the columns next to each other. The saving is that part of what the step's batched products
take.

## What to do
`torch.einsum("ij,bjk->bik", a, b)`, which makes one product of it, or `b` with the batch last:
`(a @ b.movedim(0, -1).flatten(1))`. A matrix on the right (`b @ a`) is folded by torch itself.

## Settings
- `least_share`: part of the compiled step, 0 to 1, that one product must save.

## References
- https://docs.pytorch.org/docs/stable/generated/torch.matmul.html
- https://docs.pytorch.org/docs/stable/generated/torch.einsum.html
- ATen/native/LinearAlgebra.cpp, `should_fold`
- torch/_inductor/kernel/bmm.py, `tuned_bmm`
- https://github.com/pytorch/pytorch/issues/110858
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules._gain import ONE_PRODUCT, Timed, at_first, slowest_lines
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
from traceview.torchtext.fx import read_graph, tensor_sizes, tensor_strides

CODE = "TV453"
NEEDS = frozenset({"shape_gains", "graphs", "matched_kernels", "step_counts"})
SEVERITIES = ("warning", "info")

#: A smaller gain is hard to tell from noise.
LEAST_SHARE = 0.05
_BATCHED = "aten.bmm"


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """At most one finding: all such products, at the slowest one's line."""
    gains = first_rank(rows(tables, "shape_gains", kind="gemm", way=ONE_PRODUCT))
    step = step_ms(tables, "compiled")
    lines = _lines(tables) if gains and step else set()
    ran = [
        row
        for row in first_rank(rows(tables, "matched_kernels", stance="compiled", category="gemm"))
        if f"{row['file']}:{row['line']}" in lines and _BATCHED in (row["ops"] or ())
    ]
    if not step or not ran:
        return
    timed = Timed.of(tables, gains, sum(row["ms"] or 0.0 for row in ran))
    if timed.saved < least_share * step:
        return
    shape = gains[0]["shape"]
    places = slowest_lines(ran)
    measured = timed.said("as it is", "as one product")
    yield Finding(
        code=CODE,
        rule="ind-expanded-product",
        severity=severity(tables, timed.saved),
        title=(
            f"The matrix{at_first(*places)} is multiplied with each part of a batch by itself: one "
            f"product would save {milliseconds(timed.saved)}, {percent(timed.saved / step)} of the "
            "step"
        ),
        explanation=(
            f"The library gets a batch of products of {shape}, with the same matrix in "
            "each. Laid next to each other, the others make one large product."
        ),
        cost=timed.cost("these products", measured),
        confidence="measured",
        location=places[0] if places else None,
        evidence=(Evidence(f"aten::bmm of {shape}: {measured}", "shape_gains"),),
        what_to_do=(
            "Write it as torch.einsum, which makes one product of it, and compare. Or keep the "
            "batch in the last dimension."
        ),
        snippet=Snippet(
            "python", 'y = torch.einsum("ij,bjk->bik", a, b)  # not torch.matmul(a, b)'
        ),
        also_at=tuple(places[1:4]),
        weighs=True,
    )


def _lines(tables: Tables) -> set[str]:
    """Lines of batched products in compiled code with one and the same matrix in all parts."""
    found = set()
    for row in first_rank(rows(tables, "graphs", kind="post_grad")):
        if f"{_BATCHED}.default(" not in (row["text"] or ""):
            continue
        graph = read_graph(row["text"])
        for node in graph.operations:
            if node.op != _BATCHED or not node.user_line:
                continue
            for name in node.inputs:
                meta = graph.nodes[name].meta
                sizes, strides = tensor_sizes(meta), tensor_strides(meta)
                if sizes and strides and sizes[0] > 1 and strides[0] == 0:
                    found.add(node.user_line)
    return found
