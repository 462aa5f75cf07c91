"""Least work of one call of a library operator, from its inputs' shapes.

Products are in ``products``. Here are elementwise operators and copies (the operands, and a result
of their common shape), operators that move more than they compute (reductions, normalization,
look-ups), and operators on lists of tensors: concatenation, foreach, fused optimizers. Kineto keeps
the shapes of a list but not its dtype; the kernel's own name has the element (``OpaqueType<2u>``,
``FusedAdamMathFunctor<float, 4>``). Of more than 30 tensors it keeps nothing.
"""

from __future__ import annotations

import re
from itertools import zip_longest
from math import prod

from msgspec.structs import replace

from traceview.derive.limits import products  # noqa: F401  (registers its formulas)
from traceview.derive.limits.work import (
    AT_LEAST,
    AT_MOST,
    EXACT,
    FORMULAS,
    Inputs,
    Tensor,
    Work,
    elements,
    formula,
)
from traceview.torchtext.dtypes import dtype_of, promoted, size_of

_NAMESPACES = frozenset(("aten", "mkldnn", "mkl"))


def operator_work(name: str, inputs: Inputs, kernel_name: str = "") -> Work | None:
    """What operator ``name`` (``aten::addmm``) has to do; None where no formula or shape is known.

    ``kernel_name`` is a kernel that it launched: only its name shows the dtype of listed tensors.
    """
    namespace, _, base = name.partition("::")
    if namespace not in _NAMESPACES or not base:
        return None
    base, inplace = base.split(".", 1)[0], base.endswith("_")
    base = base.rstrip("_") if inplace else base
    work: Work | None
    if base in FORMULAS:
        work = FORMULAS[base](inputs)
    elif base in _NAMES:
        work = _pointwise(base, inputs, inplace=inplace)
    elif base in _OPTIMIZERS or base in ("cat", "stack") or base.startswith("_foreach_"):
        work = _list_work(base, inputs, kernel_name)
    else:
        return None
    if work is None or work.dtype is not None:
        return work
    largest = max(inputs.tensors, key=lambda tensor: tensor.bytes, default=None)
    return replace(work, dtype=largest.dtype if largest else None)


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
_NAMES = frozenset(_ARITY) | _WRITTEN_ONLY | {"copy", "native_dropout", "native_dropout_backward"}


def _pointwise(base: str, inputs: Inputs, *, inplace: bool) -> Work | None:
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
    if inplace:
        return Work(read + first.bytes, EXACT)
    # The common shape, by NumPy's rules.
    shape: list[int] = []
    for sizes in zip_longest(*(reversed(t.dims) for t in operands), fillvalue=1):
        wide = {size for size in sizes if size != 1}
        if len(wide) > 1:
            return None
        shape.insert(0, wide.pop() if wide else 1)
    ranked = [(t.dtype, len(t.dims)) for n, t in enumerate(operands) if n != _MASKS.get(base)]
    dtype = "bool" if base in _COMPARISONS else promoted(ranked)
    return None if dtype is None else Work(read + elements(tuple(shape), dtype), EXACT)


#: c10::ScalarType as a number, where an operator takes a dtype.
_SCALAR_TYPES = {5: "float16", 6: "float32", 7: "float64", 15: "bfloat16"}


@formula(0, of=("_softmax", "_log_softmax"))
def _softmax(inputs: Inputs, x: Tensor) -> Work:
    return Work(x.bytes + elements(x.dims, "float32" if inputs.value(2) else x.dtype), EXACT)


@formula(0, 1, of=("_softmax_backward_data", "_log_softmax_backward_data"))
def _softmax_backward(inputs: Inputs, grad: Tensor, out: Tensor) -> Work:
    dtype = _SCALAR_TYPES.get(inputs.value(3), grad.dtype)
    return Work(grad.bytes + out.bytes + elements(grad.dims, dtype), EXACT)


@formula(0, of=("native_layer_norm", "_fused_rms_norm"))
def _layer_norm(inputs: Inputs, x: Tensor) -> Work | None:
    """Input and output, weight and bias, mean and rstd of every row in single precision."""
    weight, normalized = inputs.tensor(2), inputs.value(1)
    row = prod(normalized) if isinstance(normalized, list) else weight and prod(weight.dims)
    if not row:
        return None
    statistics = 2 * (prod(x.dims) // row) * max(4, size_of(x.dtype))
    return Work(inputs.bytes + elements(x.dims, x.dtype) + statistics, EXACT)


@formula(0, 1, of=("native_layer_norm_backward",))
def _layer_norm_backward(inputs: Inputs, _: Tensor, x: Tensor) -> Work:
    """All that comes in but the bias, which is not read, and a gradient for each of the three."""
    weight, bias = inputs.tensor(5), inputs.tensor(6)
    read = sum(t.bytes for t in inputs.tensors if t is not bias)
    return Work(read + x.bytes + sum(t.bytes for t in (weight, bias) if t), EXACT)


@formula(0, of=("native_batch_norm", "cudnn_batch_norm"))
def _batch_norm(inputs: Inputs, x: Tensor) -> Work | None:
    if len(x.dims) < 2:
        return None
    moved = inputs.bytes + elements(x.dims, x.dtype)
    statistics = [inputs.tensor(3), inputs.tensor(4)]
    training = inputs.value(5)
    if training:
        moved += sum(t.bytes for t in statistics if t) + 2 * x.dims[1] * 4
    return Work(moved, AT_LEAST if training is None else EXACT)


@formula(1, of=("native_batch_norm_backward",))
@formula(0, of=("cudnn_batch_norm_backward",))
def _batch_norm_backward(inputs: Inputs, x: Tensor) -> Work:
    weight = inputs.tensor(2)
    return Work(inputs.bytes + x.bytes + (2 * weight.bytes if weight else 0), EXACT)


@formula(0, of=("sum", "nansum", "mean", "amax", "amin", "prod", "logsumexp"))
def _reduction(inputs: Inputs, x: Tensor) -> Work:
    """The input, and what is left of it where the reduced dimensions are known."""
    if not inputs.values:
        return Work(x.bytes, AT_LEAST)
    reduced = inputs.value(1)
    reduced = [reduced] if type(reduced) is int else reduced
    if not isinstance(reduced, list) or not all(type(d) is int for d in reduced):
        return Work(x.bytes + size_of(x.dtype), EXACT if len(x.dims) <= 1 else AT_LEAST)
    gone = {d % len(x.dims) for d in reduced} if x.dims and reduced else set(range(len(x.dims)))
    kept = tuple(size for n, size in enumerate(x.dims) if n not in gone)
    return Work(x.bytes + elements(kept, x.dtype), EXACT)


_INPUTS_ONLY = """
    max min argmax argmin var std var_mean norm linalg_vector_norm any all mse_loss l1_loss
    max_pool2d_with_indices avg_pool2d
"""


@formula(of=_INPUTS_ONLY.split())
def _inputs_only(inputs: Inputs) -> Work | None:
    return Work(inputs.bytes, AT_LEAST) if inputs.tensors else None


@formula(0, of=("cumsum", "cumprod"))
def _same_shape(_: Inputs, x: Tensor) -> Work:
    return Work(x.bytes + elements(x.dims, x.dtype), EXACT)


@formula(0, 1, of=("nll_loss_forward",))
@formula(1, 2, of=("nll_loss_backward",))
def _nll_loss(_: Inputs, x: Tensor, target: Tensor) -> Work:
    """One element of every row and its target."""
    return Work(target.bytes + target.numel * size_of(x.dtype), AT_LEAST)


def _looked_up(table: Tensor, picked: int, index: Tensor) -> Work:
    """``picked`` elements read through ``index``, at most the whole table, and written."""
    size = size_of(table.dtype)
    return Work(index.bytes + picked * size + min(picked, table.numel) * size, AT_MOST)


@formula(0, 1, of=("embedding",))
def _embedding(_: Inputs, table: Tensor, index: Tensor) -> Work | None:
    of_rows = len(table.dims) == 2
    return _looked_up(table, index.numel * table.dims[1], index) if of_rows else None


@formula(0, 2, of=("index_select",))
def _index_select(inputs: Inputs, table: Tensor, index: Tensor) -> Work | None:
    dim = inputs.value(1)
    of_dim = table.dims[dim % len(table.dims)] if type(dim) is int and table.dims else 0
    return _looked_up(table, prod(table.dims) // of_dim * index.numel, index) if of_dim else None


@formula(0, 2, of=("gather",))
def _gather(_: Inputs, table: Tensor, index: Tensor) -> Work:
    return _looked_up(table, prod(index.dims), index)


_OPAQUE = re.compile(r"OpaqueType<(\d{1,2})u?>")
_FUNCTOR = re.compile(r"Functor<(float|double|c10::Half|c10::BFloat16)\b")
#: Fused optimizer → lists that are written again: all but the gradients and the step counts.
_OPTIMIZERS = {
    "_fused_adam": (0, 2, 3),
    "_fused_adamw": (0, 2, 3),
    "_fused_sgd": (0, 2),
    "_fused_adagrad": (0, 2),
}
_MOST_ELEMENTS = 1 << 48


def _list_work(base: str, inputs: Inputs, kernel_name: str) -> Work | None:
    """Work of ``base`` on lists; None where elements are not known, whose size the name has."""
    functor = _FUNCTOR.search(kernel_name)
    dtype = dtype_of(functor[1]) if functor else None
    size = size_of(dtype) if dtype else None
    if opaque := _OPAQUE.search(kernel_name):
        size = int(opaque[1])
    lists = [sum(found.numels) for found in inputs.lists]
    if size is None or not lists or sum(lists) > _MOST_ELEMENTS:
        return None
    if base in ("cat", "stack"):
        return Work(2 * lists[0] * size, EXACT)
    if base in _OPTIMIZERS:
        state = lists[:4]
        return Work(
            (sum(state) + sum(state[n] for n in _OPTIMIZERS[base] if n < len(state))) * size, EXACT
        )
    if base in ("_foreach_zero", "_foreach_copy"):
        return Work(sum(lists) * size, EXACT)
    if base == "_foreach_norm":
        return Work((lists[0] + len(inputs.lists[0].numels)) * size, EXACT)
    return Work((sum(lists) + lists[0]) * size, EXACT)
