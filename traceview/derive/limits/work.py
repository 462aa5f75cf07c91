"""What one execution has to do at least, and the inputs of an operator that it follows from.

Kineto keeps one entry an argument in ``Input Dims``, ``Input type``, ``Input Strides`` and
``Concrete Inputs``. A list of tensors has a list of dims and no dtype (type ``TensorList``); of
more than 30 tensors it keeps nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from math import prod
from typing import Any

import msgspec

from traceview.json_errors import NOT_JSON
from traceview.torchtext.dtypes import dtype_of, size_of

#: ``bytes`` and ``flops`` are what has to be done; where that is not known, a bound of it.
EXACT, AT_LEAST, AT_MOST = "exact", "at_least", "at_most"
#: ``bytes_from`` of a copy with one end on the host: no ceiling of the device applies.
HOST_COPY = "host_copy"
#: Columns of ``cpu_ops`` that hold an operator's inputs, as `read_inputs` takes them.
INPUTS = ("input_dims", "input_types", "input_strides", "concrete_inputs")


class Work(msgspec.Struct, frozen=True):
    """Least ``bytes`` (each tensor once) and ``flops`` of one execution; None: not known.

    ``at_least``: an input or output whose size is not known is left out. ``at_most``: places are
    read through an index, and what is read twice moves once; or there is a way to the same result
    with fewer operations.
    """

    bytes: int | None = None
    bytes_kind: str | None = None
    flops: int | None = None
    dtype: str | None = None
    flops_kind: str = EXACT


def elements(dims: tuple[int, ...], dtype: str) -> int:
    """Bytes of a dense tensor."""
    return prod(dims) * size_of(dtype)


#: Larger than any tensor: what stands beyond is damage.
_LARGEST = 1 << 48


class Tensor(msgspec.Struct, frozen=True):
    """One tensor argument; ``strides`` None where they were not recorded."""

    dims: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...] | None = None

    @property
    def numel(self) -> int:
        """Elements that indexing can reach, repeated ones (an expanded dimension) not counted."""
        strides = self.strides or (1,) * len(self.dims)
        return prod(d for d, s in zip(self.dims, strides, strict=True) if s != 0 or d == 0)

    @property
    def bytes(self) -> int:
        return self.numel * size_of(self.dtype)


class TensorList(msgspec.Struct, frozen=True):
    """A list of tensors: their elements, as their dtype is not recorded."""

    numels: tuple[int, ...]


#: None stands for a number, a list of numbers, None, or what could not be read.
Argument = Tensor | TensorList | None


class Inputs(msgspec.Struct, frozen=True):
    """Arguments by position, and the values of those that are no tensors, as text."""

    arguments: tuple[Argument, ...]
    values: tuple[str, ...]

    @property
    def tensors(self) -> list[Tensor]:
        """Tensor arguments in order, lists of them left out."""
        return [a for a in self.arguments if isinstance(a, Tensor)]

    @property
    def bytes(self) -> int:
        """Bytes of all tensors."""
        return sum(tensor.bytes for tensor in self.tensors)

    @property
    def lists(self) -> list[TensorList]:
        return [a for a in self.arguments if isinstance(a, TensorList)]

    def tensor(self, position: int) -> Tensor | None:
        """The tensor at ``position``; None if there is none."""
        found = self.arguments[position] if position < len(self.arguments) else None
        return found if isinstance(found, Tensor) else None

    def value(self, position: int) -> Any:  # noqa: ANN401
        """The number, truth value or list of them at ``position``; None if it is not known."""
        text = self.values[position] if position < len(self.values) else ""
        return _json(text.replace("True", "true").replace("False", "false"))


Formula = Callable[..., Work | None]
#: Operator, without its namespace → its least work, from its inputs.
FORMULAS: dict[str, Callable[[Inputs], Work | None]] = {}


def formula(*needed: int, of: Iterable[str]) -> Callable[[Formula], Formula]:
    """Register the work of operators ``of``: a function of their inputs and of tensors in them.

    ``needed`` are the positions of these tensors; there is no formula where one is missing.
    """

    def register(work: Formula) -> Formula:
        def of_inputs(inputs: Inputs) -> Work | None:
            tensors = [inputs.tensor(position) for position in needed]
            return None if any(t is None for t in tensors) else work(inputs, *tensors)

        FORMULAS.update(dict.fromkeys(of, of_inputs))
        return work

    return register


#: Columns of ``cpu_ops`` that hold them, as `read_inputs` takes them.
INPUTS = ("input_dims", "input_types", "input_strides", "concrete_inputs")


def read_inputs(
    dims: str | None, types: str | None, strides: str | None, values: str | None
) -> Inputs | None:
    """Inputs from the four texts of table ``cpu_ops``; None where shapes were not recorded."""
    all_dims, all_types = _json(dims), _json(types)
    if not isinstance(all_dims, list) or not isinstance(all_types, list):
        return None
    all_strides, all_values = _json(strides), _json(values)
    n = min(len(all_dims), len(all_types))
    steps = all_strides if isinstance(all_strides, list) and len(all_strides) >= n else [None] * n
    arguments = tuple(
        _argument(*entry) for entry in zip(all_dims[:n], all_types[:n], steps[:n], strict=True)
    )
    texts = all_values if isinstance(all_values, list) else []
    return Inputs(arguments, tuple(v if isinstance(v, str) else "" for v in texts))


def _argument(dims: Any, kind: Any, strides: Any) -> Argument:  # noqa: ANN401
    if not isinstance(dims, list) or not isinstance(kind, str):
        return None
    if kind == "TensorList":
        shapes = [_sizes(entry) for entry in dims]
        known = [shape for shape in shapes if shape is not None]
        return TensorList(tuple(map(prod, known))) if known and len(known) == len(shapes) else None
    sizes, dtype = _sizes(dims), dtype_of(kind)
    if sizes is None or dtype is None:
        return None
    steps = _sizes(strides)
    return Tensor(sizes, dtype, steps if steps is not None and len(steps) == len(sizes) else None)


def _sizes(value: Any) -> tuple[int, ...] | None:  # noqa: ANN401
    if not isinstance(value, list) or not all(type(v) is int and 0 <= v < _LARGEST for v in value):
        return None
    return tuple(value) if prod(value) < _LARGEST else None


def _json(text: str | None) -> Any:  # noqa: ANN401
    try:
        return json.loads(text) if text else None
    except NOT_JSON:
        return None
