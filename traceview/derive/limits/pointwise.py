"""Elementwise operators and copies: the operands, and a result of their common shape."""

from __future__ import annotations

from itertools import zip_longest

from traceview.derive.limits.inputs import Inputs, Tensor
from traceview.derive.limits.work import EXACT, Work, elements
from traceview.torchtext.dtypes import promoted

#: How many tensors an operator reads → operators whose result has the operands' dtype.
_OPERANDS = {
    1: """abs neg sign exp expm1 exp2 log log1p log2 log10 sqrt rsqrt reciprocal square sin cos tan
        tanh sigmoid erf erfc relu relu6 leaky_relu gelu silu mish elu selu celu hardtanh hardswish
        hardsigmoid softplus threshold clamp clamp_min clamp_max floor ceil round trunc frac atan
        asin acos sinh cosh log_sigmoid logit nan_to_num tril triu bitwise_not""",
    2: """add sub rsub mul div true_divide floor_divide remainder fmod pow maximum minimum fmax fmin
        atan2 bitwise_and bitwise_or bitwise_xor masked_fill gelu_backward silu_backward
        tanh_backward sigmoid_backward threshold_backward hardtanh_backward leaky_relu_backward
        elu_backward hardswish_backward hardsigmoid_backward softplus_backward mish_backward""",
    3: "addcmul addcdiv lerp where",
}
_TO_BOOL = {
    1: "logical_not isnan isinf isfinite",
    2: "eq ne lt le gt ge logical_and logical_or logical_xor",
}
_WRITTEN_ONLY = frozenset(
    ("fill", "zero", "normal", "uniform", "random", "bernoulli", "exponential")
)
_ARITY = {
    name: arity
    for table in (_OPERANDS, _TO_BOOL)
    for arity, names in table.items()
    for name in names.split()
}
_COMPARISONS = frozenset(name for names in _TO_BOOL.values() for name in names.split())
#: Operands that only choose, and have no say in the result's dtype.
_MASKS = {"where": 0, "masked_fill": 1}
NAMES = frozenset(_ARITY) | _WRITTEN_ONLY | {"copy", "native_dropout", "native_dropout_backward"}


def pointwise(base: str, inputs: Inputs, *, inplace: bool) -> Work | None:
    """Work of an elementwise operator or a copy; None where an operand is not known."""
    tensors = inputs.tensors
    if not tensors:
        return None
    first = tensors[0]
    if base == "copy":
        return Work(sum(t.bytes for t in tensors[:2]), EXACT) if len(tensors) == 2 else None
    if base in _WRITTEN_ONLY:
        return Work(first.bytes, EXACT) if inplace else None
    if base.startswith("native_dropout"):
        moved = sum(t.bytes for t in tensors) + elements(first.dims, first.dtype)
        mask = elements(first.dims, "bool") if base == "native_dropout" else 0
        return Work(moved + mask, EXACT)
    operands = tensors[: _ARITY[base]]
    read = sum(t.bytes for t in operands)
    written = first.bytes if inplace else _result(base, operands)
    return None if written is None else Work(read + written, EXACT)


def _result(base: str, operands: list[Tensor]) -> int | None:
    shape = _broadcast(operands)
    ranked = [(t.dtype, len(t.dims)) for n, t in enumerate(operands) if n != _MASKS.get(base)]
    dtype = "bool" if base in _COMPARISONS else promoted(ranked)
    return None if shape is None or dtype is None else elements(shape, dtype)


def _broadcast(operands: list[Tensor]) -> tuple[int, ...] | None:
    """The common shape, by NumPy's rules; None where there is none."""
    shape: list[int] = []
    for sizes in zip_longest(*(reversed(t.dims) for t in operands), fillvalue=1):
        wide = {size for size in sizes if size != 1}
        if len(wide) > 1:
            return None
        shape.append(wide.pop() if wide else 1)
    return tuple(reversed(shape))
