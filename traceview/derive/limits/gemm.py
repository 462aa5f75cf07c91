"""Matrix products: 2·M·N·K operations; both operands, the result and a bias, each moved once.

The counts are those of torch/utils/flop_counter.py (``mm_flop``, ``bmm_flop``, ``addmm_flop``).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod

from traceview.derive.limits.inputs import Inputs, Tensor
from traceview.derive.limits.work import AT_LEAST, EXACT, Work, elements

#: Operator → position of the first factor; what stands before it is added to the product.
_FIRST = {
    "mm": 0, "bmm": 0, "matmul": 0, "mv": 0, "dot": 0, "vdot": 0, "_int_mm": 0,
    "addmm": 1, "_addmm_activation": 1, "baddbmm": 1, "addmv": 1,
}  # fmt: skip


def product(base: str) -> Callable[[Inputs], Work | None]:
    """A product of two factors, with what is added to it; None where the shapes do not fit."""
    at = _FIRST[base]

    def work(inputs: Inputs) -> Work | None:
        left, right = inputs.tensor(at), inputs.tensor(at + 1)
        if left is None or right is None:
            return None
        added = [t for t in inputs.arguments[:at] if isinstance(t, Tensor)]
        return _work(left, right, added, "int32" if base == "_int_mm" else left.dtype)

    return work


def scaled(inputs: Inputs) -> Work | None:
    """``_scaled_mm``: fp8 factors; the result's dtype is an argument, so its bytes are left out."""
    left, right = inputs.tensor(0), inputs.tensor(1)
    if left is None or right is None:
        return None
    work = _work(left, right, [], left.dtype)
    return work and Work(left.bytes + right.bytes, AT_LEAST, work.flops, left.dtype)


def linear(inputs: Inputs, at: int = 1) -> Work | None:
    """``x @ weight.T + bias``: aten's, oneDNN's and MKL's; ``at`` is the weight's position."""
    x, weight, bias = inputs.tensor(0), inputs.tensor(at), inputs.tensor(at + 1)
    if x is None or weight is None or len(weight.dims) != 2 or not x.dims:
        return None
    n, k = weight.dims
    if x.dims[-1] != k:
        return None
    rows = prod(x.dims[:-1])
    moved = x.bytes + weight.bytes + elements((rows, n), x.dtype) + (bias.bytes if bias else 0)
    return Work(moved, EXACT, 2 * rows * n * k, x.dtype)


def _work(left: Tensor, right: Tensor, added: list[Tensor], dtype: str) -> Work | None:
    *rows, k = left.dims or (0,)
    columns = right.dims[-1:] if len(right.dims) > 1 else ()
    batch = right.dims[:-2]
    inner = right.dims[-2] if len(right.dims) > 1 else prod(right.dims)
    if not left.dims or not right.dims or inner != k:
        return None
    if batch and (len(rows) != len(batch) + 1 or tuple(rows[:-1]) != batch):
        return None
    out = (*rows, *columns)
    moved = left.bytes + right.bytes + elements(out, dtype) + sum(t.bytes for t in added)
    return Work(moved, EXACT, 2 * prod(out) * k, left.dtype)


OPERATORS: dict[str, Callable[[Inputs], Work | None]] = {
    **{name: product(name) for name in _FIRST},
    **dict.fromkeys(("linear", "_linear_pointwise", "mkldnn_linear"), linear),
    "_mkl_linear": partial(linear, at=2),  # its own packed form of the weight comes first
    "_scaled_mm": scaled,
}
