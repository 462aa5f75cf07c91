"""Fused attention: two products forward, five backward (the scores are computed anew).

The counts are those of torch/utils/flop_counter.py (``sdpa_flop_count``,
``sdpa_backward_flop_count``), halved where the mask is known to be causal: what lies above the
diagonal need not be computed. Where it is not known whether it is, neither are the operations.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec

from traceview.derive.limits.inputs import Inputs, Tensor
from traceview.derive.limits.work import EXACT, Work, elements


class _Form(msgspec.Struct, frozen=True):
    """Where an operator has its query (key and value follow), its heads and its mask.

    ``causal`` is the position of ``is_causal`` or, in efficient kernels, of ``custom_mask_type``:
    0 is none, 1 and 2 are causal. ``varlen``: positions that are None unless sequences are packed.
    """

    query: int
    heads: int
    causal: int
    varlen: tuple[int, ...] = ()
    backward: bool = False


_FORMS = {
    "_scaled_dot_product_flash_attention": _Form(0, 1, 4),
    "_scaled_dot_product_flash_attention_backward": _Form(1, 1, 11, (6, 7), backward=True),
    "_scaled_dot_product_efficient_attention": _Form(0, 1, 6),
    "_scaled_dot_product_efficient_attention_backward": _Form(1, 1, 11, backward=True),
    "_scaled_dot_product_cudnn_attention": _Form(0, 1, 6),
    "_scaled_dot_product_cudnn_attention_backward": _Form(1, 1, 14, (9, 10), backward=True),
    "_scaled_dot_product_flash_attention_for_cpu": _Form(0, 1, 4),
    "_scaled_dot_product_flash_attention_for_cpu_backward": _Form(1, 1, 7, backward=True),
    "_flash_attention_forward": _Form(0, 2, 8, (3, 4)),
    "_flash_attention_backward": _Form(1, 2, 11, (6, 7), backward=True),
    "_cudnn_attention_forward": _Form(0, 1, 10, (4, 5)),
    "_cudnn_attention_backward": _Form(1, 1, 14, (9, 10), backward=True),
    "_efficient_attention_forward": _Form(0, 2, 9, (4, 5)),
    "_efficient_attention_backward": _Form(1, 2, 14, (6, 7), backward=True),
}


def _work(form: _Form, inputs: Inputs) -> Work | None:
    found = [inputs.tensor(form.query + n) for n in range(3)]
    query, key, value = found
    if query is None or key is None or value is None or any(inputs.tensor(n) for n in form.varlen):
        return None
    if any(len(t.dims) != 4 for t in (query, key, value)):
        return None
    moved = _bytes(form, inputs, (query, key, value))
    return Work(moved, EXACT, _flops(form, inputs, query, key, value), query.dtype)


def _bytes(form: _Form, inputs: Inputs, factors: tuple[Tensor, Tensor, Tensor]) -> int:
    """All tensors that come in and, forward, the output; backward, the three gradients."""
    query, _, value = factors
    if form.backward:
        return sum(t.bytes for t in inputs.tensors) + sum(t.bytes for t in factors)
    return sum(t.bytes for t in inputs.tensors) + elements(
        (*query.dims[:3], value.dims[3]), query.dtype
    )


def _flops(form: _Form, inputs: Inputs, query: Tensor, key: Tensor, value: Tensor) -> int | None:
    causal = inputs.value(form.causal)
    if causal is None:
        return None
    batch, heads, rows = query.dims[0], query.dims[form.heads], query.dims[3 - form.heads]
    columns = key.dims[3 - form.heads]
    scores = 2 * batch * heads * rows * columns * query.dims[3]
    mixed = 2 * batch * heads * rows * columns * value.dims[3]
    total = 3 * scores + 2 * mixed if form.backward else scores + mixed
    return total // 2 if causal else total


OPERATORS: dict[str, Callable[[Inputs], Work | None]] = {
    name: partial(_work, form) for name, form in _FORMS.items()
}
