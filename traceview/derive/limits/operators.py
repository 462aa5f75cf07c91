"""Least work of one call of a library operator, from its inputs' shapes."""

from __future__ import annotations

from msgspec.structs import replace

from traceview.derive.limits import attention, convolution, gemm, memory
from traceview.derive.limits.inputs import Inputs
from traceview.derive.limits.lists import element_bytes, is_list_operator, list_work
from traceview.derive.limits.pointwise import NAMES, pointwise
from traceview.derive.limits.work import Work

_OPERATORS = gemm.OPERATORS | attention.OPERATORS | convolution.OPERATORS | memory.OPERATORS
_NAMESPACES = frozenset(("aten", "mkldnn", "mkl"))


def operator_work(name: str, inputs: Inputs, kernel_name: str = "") -> Work | None:
    """What operator ``name`` (``aten::addmm``) has to do; None where no formula or shape is known.

    ``kernel_name`` is a kernel that it launched: of lists of tensors only that tells the dtype.
    """
    namespace, _, base = name.partition("::")
    if namespace not in _NAMESPACES or not base:
        return None
    base, inplace = base.split(".", 1)[0], base.endswith("_")
    base = base.rstrip("_") if inplace else base
    work: Work | None
    if base in _OPERATORS:
        work = _OPERATORS[base](inputs)
    elif base in NAMES:
        work = pointwise(base, inputs, inplace=inplace)
    elif is_list_operator(base):
        work = list_work(base, inputs, element_bytes(kernel_name))
    else:
        return None
    if work is None or work.dtype is not None:
        return work
    largest = max(inputs.tensors, key=lambda tensor: tensor.bytes, default=None)
    return replace(work, dtype=largest.dtype if largest else None)
