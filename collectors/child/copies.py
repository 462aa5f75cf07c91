"""Copies of a callable and all that it computes with: its module, or what a function refers to.

A function of the user's finds its modules and tensors in cells, globals and defaults, often by way
of helpers. Its copy has the same code, and copies of those in their place.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any

from .frames import Frames

_PLAIN = (list, tuple, dict)


class Copies:
    """One set of copies; what was shared between originals is shared between copies."""

    def __init__(self, torch: Any, frames: Frames) -> None:
        self._torch = torch
        self._frames = frames
        self._memo: dict[int, Any] = {}
        self._functions: dict[int, FunctionType] = {}

    def of(self, value: Any) -> Any:
        """A copy, by ``copy.deepcopy``; raises whatever the user's own classes raise there."""
        return copy.deepcopy(value, self._memo)

    def of_callable(self, call: Any) -> Any:
        """A copy of a callable; what it refers to and holds no tensors is not copied."""
        if isinstance(call, FunctionType):
            return self._function(call)
        if isinstance(call, MethodType):
            function: Any = call.__func__
            if isinstance(function, FunctionType):
                function = self._function(function)
            return MethodType(function, self.of(call.__self__))
        if isinstance(call, functools.partial):
            inner = self.of_callable(call.func)
            return functools.partial(inner, *self.of(call.args), **self.of(call.keywords))
        return self.of(call)

    def tensors(self) -> Iterator[Any]:
        """Every tensor that has been copied."""
        return (each for each in self._memo.values() if isinstance(each, self._torch.Tensor))

    def to_double(self) -> None:
        """Every copied tensor in float64 (complex128), in its place: shared ones stay shared."""
        torch = self._torch
        for tensor in self.tensors():
            if tensor.is_floating_point():
                tensor.data = tensor.data.to(torch.float64)
            elif tensor.is_complex():
                tensor.data = tensor.data.to(torch.complex128)

    def _function(self, function: FunctionType) -> FunctionType:
        if id(function) in self._functions:
            return self._functions[id(function)]
        cells = tuple(CellType() for _ in function.__closure__ or ())
        names: dict[str, Any] = dict(function.__globals__)
        code, name = function.__code__, function.__name__
        copied = FunctionType(code, names, name, None, cells or None)
        self._functions[id(function)] = copied  # before the rest: functions may be recursive
        copied.__dict__.update(function.__dict__)
        copied.__qualname__ = function.__qualname__
        copied.__defaults__ = self._referred(function.__defaults__)
        copied.__kwdefaults__ = self._referred(function.__kwdefaults__)
        for cell, original in zip(cells, function.__closure__ or (), strict=True):
            try:
                cell.cell_contents = self._referred(original.cell_contents)
            except ValueError:  # an empty cell: a variable that is not bound yet
                continue
        for known in set(_names(code)) & set(names):
            names[known] = self._referred(names[known])
        return copied

    def _referred(self, value: Any) -> Any:
        """A copy of what a function refers to, if it has state; else the thing itself."""
        from torch.utils._pytree import tree_leaves

        torch = self._torch
        with_state = (torch.Tensor, torch.nn.Module, torch.optim.Optimizer)
        if isinstance(value, with_state):
            return self.of(value)
        if isinstance(value, FunctionType):
            code = getattr(getattr(value, "__wrapped__", value), "__code__", None)
            users = code is not None and self._frames.is_user(code.co_filename)
            return self._function(value) if users else value
        if isinstance(value, MethodType) and isinstance(value.__self__, torch.nn.Module):
            return self.of_callable(value)
        plain = type(value) in _PLAIN
        if plain and any(isinstance(leaf, with_state) for leaf in tree_leaves(value)):
            return self.of(value)
        return value


class Originals(Copies):
    """Copies nothing and remembers what would be copied, to know how much that is."""

    def __init__(self, torch: Any, frames: Frames) -> None:
        super().__init__(torch, frames)
        self._found: list[Any] = []

    def of(self, value: Any) -> Any:
        """The value itself."""
        self._found.append(value)
        return value

    def tensors(self) -> Iterator[Any]:
        """Tensors and those of modules, in containers and as attributes; each once."""
        from torch.utils._pytree import tree_leaves

        torch, seen = self._torch, set()
        leaves = [leaf for value in self._found for leaf in tree_leaves(value)]
        leaves += [own for leaf in leaves for own in getattr(leaf, "__dict__", {}).values()]
        for leaf in leaves:
            own = isinstance(leaf, torch.nn.Module)
            for tensor in (*leaf.parameters(), *leaf.buffers()) if own else (leaf,):
                if isinstance(tensor, torch.Tensor) and id(tensor) not in seen:
                    seen.add(id(tensor))
                    yield tensor


def _names(code: CodeType) -> Iterator[str]:
    """Names that code may look up in its globals, in functions within it too."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
