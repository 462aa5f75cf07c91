"""Operators on lists of tensors: concatenation, foreach, fused optimizers.

Kineto keeps the shapes of a list but not its dtype; the kernel's own name has the element
(``OpaqueType<2u>``, ``FusedAdamMathFunctor<float, 4>``). Of more than 30 tensors it keeps nothing.
"""

from __future__ import annotations

import re

from traceview.derive.limits.inputs import Inputs
from traceview.derive.limits.work import EXACT, Work
from traceview.torchtext.dtypes import dtype_of, size_of

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


def element_bytes(kernel_name: str) -> int | None:
    """Bytes of one element, from the name of the kernel that works on the list."""
    if opaque := _OPAQUE.search(kernel_name):
        return int(opaque[1])
    functor = _FUNCTOR.search(kernel_name)
    dtype = dtype_of(functor[1]) if functor else None
    return size_of(dtype) if dtype else None


def is_list_operator(base: str) -> bool:
    """Whether ``list_work`` knows the operator."""
    return base in _OPTIMIZERS or base in ("cat", "stack") or base.startswith("_foreach_")


def list_work(base: str, inputs: Inputs, size: int | None) -> Work | None:
    """Work of ``base`` on lists of elements of ``size`` bytes; None where they are not known."""
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
