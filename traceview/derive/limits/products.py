"""Least work of matrix products, fused attention and convolutions: operations and bytes.

The counts are those of torch/utils/flop_counter.py. A product is 2·M·N·K operations, with both
operands, the result and a bias each moved once. Attention is two products forward and five backward
(the scores are computed again); where the mask is known to be causal it is half of that, since what
lies above the diagonal need not be computed. A convolution is one product of the filter for every
place of the output; the places follow from strides, padding and dilation, which are values, not
shapes: without ``Concrete Inputs`` only what comes in is known. Only where the filter is 1×1 must
all of these operations be done: Winograd's way and an FFT need fewer for a larger one.
"""

from __future__ import annotations

from functools import partial
from math import prod

import msgspec

from traceview.derive.limits.work import (
    AT_LEAST,
    AT_MOST,
    EXACT,
    Inputs,
    Tensor,
    Work,
    elements,
    formula,
)


def _product(left: Tensor, right: Tensor, added: list[Tensor], dtype: str) -> Work | None:
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


@formula(0, 1, of=("mm", "bmm", "matmul", "mv", "dot", "vdot"))
def _of_two(_: Inputs, left: Tensor, right: Tensor) -> Work | None:
    return _product(left, right, [], left.dtype)


@formula(0, 1, of=("_int_mm",))
def _of_integers(_: Inputs, left: Tensor, right: Tensor) -> Work | None:
    return _product(left, right, [], "int32")


@formula(1, 2, of=("addmm", "_addmm_activation", "baddbmm", "addmv"))
def _with_addend(inputs: Inputs, left: Tensor, right: Tensor) -> Work | None:
    added = inputs.tensor(0)
    return _product(left, right, [added] if added else [], left.dtype)


@formula(0, 1, of=("_scaled_mm",))
def _scaled(_: Inputs, left: Tensor, right: Tensor) -> Work | None:
    """fp8 factors; the result's dtype is an argument, so its bytes are left out."""
    work = _product(left, right, [], left.dtype)
    return work and Work(left.bytes + right.bytes, AT_LEAST, work.flops, left.dtype)


@formula(0, 1, of=("linear", "_linear_pointwise", "mkldnn_linear"))
def _linear(inputs: Inputs, x: Tensor, weight: Tensor, bias_at: int = 2) -> Work | None:
    """``x @ weight.T + bias``: aten's, oneDNN's and MKL's."""
    bias = inputs.tensor(bias_at)
    if len(weight.dims) != 2 or not x.dims or x.dims[-1] != weight.dims[1]:
        return None
    n, k = weight.dims
    rows = prod(x.dims[:-1])
    moved = x.bytes + weight.bytes + elements((rows, n), x.dtype) + (bias.bytes if bias else 0)
    return Work(moved, EXACT, 2 * rows * n * k, x.dtype)


# MKL's own packed form of the weight comes first
formula(0, 2, of=("_mkl_linear",))(partial(_linear, bias_at=3))


class _Attention(msgspec.Struct, frozen=True):
    """Where an operator has its query (key and value follow), its heads and its mask.

    ``causal`` is the position of ``is_causal`` or, in efficient kernels, of ``custom_mask_type``:
    0 is none, 1 and 2 are causal. ``varlen``: positions that are None unless sequences are packed.
    """

    query: int
    heads: int
    causal: int
    varlen: tuple[int, ...] = ()
    backward: bool = False


_ATTENTION = {
    "_scaled_dot_product_flash_attention": _Attention(0, 1, 4),
    "_scaled_dot_product_flash_attention_backward": _Attention(1, 1, 11, (6, 7), backward=True),
    "_scaled_dot_product_efficient_attention": _Attention(0, 1, 6),
    "_scaled_dot_product_efficient_attention_backward": _Attention(1, 1, 11, backward=True),
    "_scaled_dot_product_cudnn_attention": _Attention(0, 1, 6),
    "_scaled_dot_product_cudnn_attention_backward": _Attention(1, 1, 14, (9, 10), backward=True),
    "_scaled_dot_product_flash_attention_for_cpu": _Attention(0, 1, 4),
    "_scaled_dot_product_flash_attention_for_cpu_backward": _Attention(1, 1, 7, backward=True),
    "_flash_attention_forward": _Attention(0, 2, 8, (3, 4)),
    "_flash_attention_backward": _Attention(1, 2, 11, (6, 7), backward=True),
    "_cudnn_attention_forward": _Attention(0, 1, 10, (4, 5)),
    "_cudnn_attention_backward": _Attention(1, 1, 14, (9, 10), backward=True),
    "_efficient_attention_forward": _Attention(0, 2, 9, (4, 5)),
    "_efficient_attention_backward": _Attention(1, 2, 14, (6, 7), backward=True),
}


def _attention(form: _Attention, inputs: Inputs, *operands: Tensor) -> Work | None:
    """All tensors that come in and, forward, the output; backward, the three gradients."""
    query, key, value = operands
    if any(inputs.tensor(n) for n in form.varlen) or any(len(t.dims) != 4 for t in operands):
        return None
    if form.backward:
        written = query.bytes + key.bytes + value.bytes
    else:
        written = elements((*query.dims[:3], value.dims[3]), query.dtype)
    flops, causal = None, inputs.value(form.causal)
    if causal is not None:
        batch, heads, rows = query.dims[0], query.dims[form.heads], query.dims[3 - form.heads]
        columns = key.dims[3 - form.heads]
        scores = 2 * batch * heads * rows * columns * query.dims[3]
        mixed = 2 * batch * heads * rows * columns * value.dims[3]
        flops = 3 * scores + 2 * mixed if form.backward else scores + mixed
        flops = flops // 2 if causal else flops
    return Work(inputs.bytes + written, EXACT, flops, query.dtype)


for _name, _form in _ATTENTION.items():
    formula(*range(_form.query, _form.query + 3), of=(_name,))(partial(_attention, _form))


class _Convolution(msgspec.Struct, frozen=True):
    """Positions of the stride, padding and dilation, and of ``transposed`` where there is one."""

    stride: int
    padding: int
    dilation: int
    transposed: int | None = None


_CONVOLUTION = {
    "convolution": _Convolution(3, 4, 5, 6),
    "_convolution": _Convolution(3, 4, 5, 6),
    "convolution_overrideable": _Convolution(3, 4, 5, 6),
    "cudnn_convolution": _Convolution(3, 2, 4),
    "mkldnn_convolution": _Convolution(4, 3, 5),
    "_convolution_pointwise": _Convolution(4, 3, 5),
}


def _convolution(form: _Convolution, inputs: Inputs, x: Tensor, weight: Tensor) -> Work | None:
    if len(x.dims) != len(weight.dims) or len(x.dims) < 3:
        return None
    if form.transposed is not None and inputs.value(form.transposed) is not False:
        return None
    bias = inputs.tensor(2)
    filters = weight.bytes + (bias.bytes if bias else 0)
    inexact = Work(x.bytes + filters, AT_LEAST, None, x.dtype)
    spatial = len(x.dims) - 2
    settings = [inputs.value(at) for at in (form.stride, form.padding, form.dilation)]
    if not all(isinstance(s, list) and all(isinstance(v, int) for v in s) for s in settings):
        return inexact
    stride, padding, dilation = (s * spatial if len(s) == 1 else s for s in settings)
    if not len(stride) == len(padding) == len(dilation) == spatial or 0 in stride:
        return inexact
    by_dimension = zip(x.dims[2:], weight.dims[2:], stride, padding, dilation, strict=True)
    places = [(size + 2 * p - d * (k - 1) - 1) // s + 1 for size, k, s, p, d in by_dimension]
    out = (x.dims[0], weight.dims[0], *places)
    flops = 2 * prod(out) * prod(weight.dims[1:])
    # Strides larger than the filter skip places of the input.
    read = (min(n * k, d) for n, k, d in zip(places, weight.dims[2:], x.dims[2:], strict=True))
    moved = filters + elements((*x.dims[:2], *read), x.dtype) + elements(out, x.dtype)
    return Work(moved, EXACT, flops, x.dtype, _flops_kind(weight, padding))


def _flops_kind(weight: Tensor, padding: list[int]) -> str:
    return EXACT if set(weight.dims[2:]) == {1} and not any(padding) else AT_MOST


for _name, _places_of in _CONVOLUTION.items():
    formula(0, 1, of=(_name,))(partial(_convolution, _places_of))


@formula(0, 1, 2, of=("convolution_backward",))
def _convolution_backward(inputs: Inputs, grad: Tensor, x: Tensor, weight: Tensor) -> Work | None:
    """Gradients of the input, of the weight, or both, as ``output_mask`` says."""
    mask = inputs.value(10)
    if inputs.value(7) is not False:
        return None
    if not isinstance(mask, list) or len(mask) != 3:
        return Work(grad.bytes + x.bytes + weight.bytes, AT_LEAST, None, x.dtype)
    once = 2 * prod(grad.dims) * prod(weight.dims[1:])
    read = grad.bytes + (weight.bytes if mask[0] else 0) + (x.bytes if mask[1] else 0)
    written = (x.bytes if mask[0] else 0) + (weight.bytes if mask[1] else 0)
    flops = once * (bool(mask[0]) + bool(mask[1]))
    padding = inputs.value(5)
    known = padding if isinstance(padding, list) else [1]
    return Work(read + written, EXACT, flops, x.dtype, _flops_kind(weight, known))
