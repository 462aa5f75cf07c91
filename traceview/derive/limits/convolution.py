"""Convolutions: one product of the filter for every place of the output.

The counts are those of torch/utils/flop_counter.py (``conv_flop_count``,
``conv_backward_flop``). The output's places follow from strides, padding and dilation, which are
values, not shapes: without ``Concrete Inputs`` only what comes in is known.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod

import msgspec

from traceview.derive.limits.inputs import Inputs, Tensor
from traceview.derive.limits.work import AT_LEAST, EXACT, Work, elements


class _Form(msgspec.Struct, frozen=True):
    """Positions of the stride, padding and dilation, and of ``transposed`` where there is one."""

    stride: int
    padding: int
    dilation: int
    transposed: int | None = None


_FORMS = {
    "convolution": _Form(3, 4, 5, 6),
    "_convolution": _Form(3, 4, 5, 6),
    "convolution_overrideable": _Form(3, 4, 5, 6),
    "cudnn_convolution": _Form(3, 2, 4),
    "mkldnn_convolution": _Form(4, 3, 5),
    "_convolution_pointwise": _Form(4, 3, 5),
}


def _forward(form: _Form, inputs: Inputs) -> Work | None:
    x, weight = inputs.tensor(0), inputs.tensor(1)
    if x is None or weight is None or len(x.dims) != len(weight.dims) or len(x.dims) < 3:
        return None
    if form.transposed is not None and inputs.value(form.transposed) is not False:
        return None
    bias = inputs.tensor(2)
    moved = x.bytes + weight.bytes + (bias.bytes if bias else 0)
    places = _places(form, inputs, x, weight)
    if places is None:
        return Work(moved, AT_LEAST, None, x.dtype)
    out = (x.dims[0], weight.dims[0], *places)
    flops = 2 * prod(out) * prod(weight.dims[1:])
    return Work(moved + elements(out, x.dtype), EXACT, flops, x.dtype)


def _places(form: _Form, inputs: Inputs, x: Tensor, weight: Tensor) -> list[int] | None:
    """The output's spatial sizes."""
    spatial = len(x.dims) - 2
    settings = [inputs.value(at) for at in (form.stride, form.padding, form.dilation)]
    if not all(isinstance(s, list) and all(isinstance(v, int) for v in s) for s in settings):
        return None
    stride, padding, dilation = (s * spatial if len(s) == 1 else s for s in settings)
    if not len(stride) == len(padding) == len(dilation) == spatial or 0 in stride:
        return None
    return [
        (size + 2 * p - d * (k - 1) - 1) // s + 1
        for size, k, s, p, d in zip(
            x.dims[2:], weight.dims[2:], stride, padding, dilation, strict=True
        )
    ]


def _backward(inputs: Inputs) -> Work | None:
    """Gradients of the input, of the weight, or both, as ``output_mask`` says."""
    grad, x, weight = (inputs.tensor(n) for n in range(3))
    mask = inputs.value(10)
    if grad is None or x is None or weight is None or inputs.value(7) is not False:
        return None
    if not isinstance(mask, list) or len(mask) != 3:
        return Work(grad.bytes + x.bytes + weight.bytes, AT_LEAST, None, x.dtype)
    once = 2 * prod(grad.dims) * prod(weight.dims[1:])
    read = grad.bytes + (weight.bytes if mask[0] else 0) + (x.bytes if mask[1] else 0)
    written = (x.bytes if mask[0] else 0) + (weight.bytes if mask[1] else 0)
    return Work(read + written, EXACT, once * (bool(mask[0]) + bool(mask[1])), x.dtype)


OPERATORS: dict[str, Callable[[Inputs], Work | None]] = {
    **{name: partial(_forward, form) for name, form in _FORMS.items()},
    "convolution_backward": _backward,
}
