"""Operators that move more than they compute: reductions, normalisation, look-ups, lists."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from traceview.derive.limits.inputs import Inputs, Tensor
from traceview.derive.limits.work import AT_LEAST, AT_MOST, EXACT, Work, elements
from traceview.torchtext.dtypes import size_of

#: c10::ScalarType as a number, where an operator is told a dtype.
_SCALAR_TYPES = {5: "float16", 6: "float32", 7: "float64", 15: "bfloat16"}


def _softmax(inputs: Inputs) -> Work | None:
    x = inputs.tensor(0)
    if x is None:
        return None
    return Work(x.bytes + elements(x.dims, "float32" if inputs.value(2) else x.dtype), EXACT)


def _softmax_backward(inputs: Inputs) -> Work | None:
    grad, out = inputs.tensor(0), inputs.tensor(1)
    if grad is None or out is None:
        return None
    dtype = _SCALAR_TYPES.get(inputs.value(3), grad.dtype)
    return Work(grad.bytes + out.bytes + elements(grad.dims, dtype), EXACT)


def _layer_norm(inputs: Inputs) -> Work | None:
    """Input and output, weight and bias, mean and rstd of every row in single precision."""
    x, rows = inputs.tensor(0), _rows(inputs, 0, 1)
    if x is None or rows is None:
        return None
    moved = sum(t.bytes for t in inputs.tensors) + elements(x.dims, x.dtype)
    return Work(moved + 2 * rows * max(4, size_of(x.dtype)), EXACT)


def _rows(inputs: Inputs, tensor: int, shape: int) -> int | None:
    """Rows that are normalised: all elements over those of one row."""
    x, normalized = inputs.tensor(tensor), inputs.value(shape)
    weight = inputs.tensor(2)
    row = prod(normalized) if isinstance(normalized, list) else weight and prod(weight.dims)
    return prod(x.dims) // row if x is not None and row else None


def _layer_norm_backward(inputs: Inputs) -> Work | None:
    """All that comes in but the bias, which is not read, and a gradient for each of the three."""
    x, weight, bias = inputs.tensor(1), inputs.tensor(5), inputs.tensor(6)
    if x is None or inputs.tensor(0) is None:
        return None
    read = sum(t.bytes for t in inputs.tensors if t is not bias)
    return Work(read + x.bytes + sum(t.bytes for t in (weight, bias) if t), EXACT)


def _batch_norm(inputs: Inputs) -> Work | None:
    x = inputs.tensor(0)
    if x is None or len(x.dims) < 2:
        return None
    moved = sum(t.bytes for t in inputs.tensors) + elements(x.dims, x.dtype)
    statistics = [inputs.tensor(3), inputs.tensor(4)]
    training = inputs.value(5)
    if training:
        moved += sum(t.bytes for t in statistics if t) + 2 * x.dims[1] * 4
    return Work(moved, AT_LEAST if training is None else EXACT)


def _norm_backward(position: int) -> Callable[[Inputs], Work | None]:
    """Batch normalisation's: ``position`` is that of the input; the weight comes after both."""

    def work(inputs: Inputs) -> Work | None:
        x, weight = inputs.tensor(position), inputs.tensor(2)
        if x is None:
            return None
        moved = sum(t.bytes for t in inputs.tensors) + x.bytes
        return Work(moved + (2 * weight.bytes if weight else 0), EXACT)

    return work


def _reduction(inputs: Inputs) -> Work | None:
    """The input, and what is left of it where the reduced dimensions are known."""
    x = inputs.tensor(0)
    if x is None:
        return None
    if not inputs.values:
        return Work(x.bytes, AT_LEAST)
    reduced = inputs.value(1)
    reduced = [reduced] if type(reduced) is int else reduced
    if not isinstance(reduced, list) or not all(type(d) is int for d in reduced):
        return Work(x.bytes + size_of(x.dtype), EXACT if len(x.dims) <= 1 else AT_LEAST)
    gone = {d % len(x.dims) for d in reduced} if x.dims and reduced else set(range(len(x.dims)))
    kept = tuple(size for n, size in enumerate(x.dims) if n not in gone)
    return Work(x.bytes + elements(kept, x.dtype), EXACT)


def _inputs_only(inputs: Inputs) -> Work | None:
    return Work(sum(t.bytes for t in inputs.tensors), AT_LEAST) if inputs.tensors else None


def _same_shape(inputs: Inputs) -> Work | None:
    x = inputs.tensor(0)
    return None if x is None else Work(x.bytes + elements(x.dims, x.dtype), EXACT)


def _nll_loss(position: int) -> Callable[[Inputs], Work | None]:
    """One element of every row and its target; ``position`` is that of the rows."""

    def work(inputs: Inputs) -> Work | None:
        x, target = inputs.tensor(position), inputs.tensor(position + 1)
        if x is None or target is None:
            return None
        return Work(target.bytes + target.numel * size_of(x.dtype), AT_LEAST)

    return work


def _looked_up(table: Tensor, picked: int, index: Tensor) -> Work:
    """``picked`` elements read through ``index``, at most the whole table, and written."""
    size = size_of(table.dtype)
    return Work(index.bytes + picked * size + min(picked, table.numel) * size, AT_MOST)


def _embedding(inputs: Inputs) -> Work | None:
    table, index = inputs.tensor(0), inputs.tensor(1)
    if table is None or index is None or len(table.dims) != 2:
        return None
    return _looked_up(table, index.numel * table.dims[1], index)


def _index_select(inputs: Inputs) -> Work | None:
    table, dim, index = inputs.tensor(0), inputs.value(1), inputs.tensor(2)
    if table is None or index is None or type(dim) is not int or not table.dims:
        return None
    of_dim = table.dims[dim % len(table.dims)]
    return _looked_up(table, prod(table.dims) // of_dim * index.numel, index) if of_dim else None


def _gather(inputs: Inputs) -> Work | None:
    table, index = inputs.tensor(0), inputs.tensor(2)
    return None if table is None or index is None else _looked_up(table, prod(index.dims), index)


OPERATORS: dict[str, Callable[[Inputs], Work | None]] = {
    **dict.fromkeys(("_softmax", "_log_softmax"), _softmax),
    **dict.fromkeys(("_softmax_backward_data", "_log_softmax_backward_data"), _softmax_backward),
    **dict.fromkeys(("native_layer_norm", "_fused_rms_norm"), _layer_norm),
    "native_layer_norm_backward": _layer_norm_backward,
    **dict.fromkeys(("native_batch_norm", "cudnn_batch_norm"), _batch_norm),
    "native_batch_norm_backward": _norm_backward(1),
    "cudnn_batch_norm_backward": _norm_backward(0),
    **dict.fromkeys(("sum", "nansum", "mean", "amax", "amin", "prod", "logsumexp"), _reduction),
    **dict.fromkeys(
        ("max", "min", "argmax", "argmin", "var", "std", "var_mean", "norm", "linalg_vector_norm",
         "any", "all", "mse_loss", "l1_loss", "max_pool2d_with_indices", "avg_pool2d"),
        _inputs_only,
    ),
    **dict.fromkeys(("cumsum", "cumprod"), _same_shape),
    "nll_loss_forward": _nll_loss(0),
    "nll_loss_backward": _nll_loss(1),
    "embedding": _embedding,
    "index_select": _index_select,
    "gather": _gather,
}  # fmt: skip
