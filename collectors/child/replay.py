"""Runs a kept call again on copies, as often as needed, always from the same state.

Copied is the callable and all that it computes with: its module, or what a function refers to. A
function of the user's finds its modules and tensors in cells, globals and defaults, often by way of
helpers. Its copy has the same code, and copies of those in their place.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any

from .frames import Frames
from .taken import Taken, free_bytes

MOST_OUTPUTS = 64  # of one container
_DEPTH = 6
_SIMPLE = (bool, int, float, str, type(None))
_PLAIN = (list, tuple, dict)

Compile = Callable[[Any], Any]


class NotCompared(Exception):
    """Why the outputs are not compared."""


class Replay:
    """One kept call. Every run has fresh copies, the same random numbers and the same modes.

    ``draws``: whether eager drew random numbers; ``before``: what it may write into, as it was.
    """

    def __init__(self, torch: Any, taken: Taken, frames: Frames) -> None:
        self._torch = torch
        self._taken = taken
        self._frames = frames
        self._seeds = Seeds(torch)
        self.draws = False
        self.before: dict[str, Any] = {}

    def run(self, compiled: Compile | None = None, *, double: bool = False) -> dict[str, Any]:
        """Outputs by name, and what the call wrote into its arguments and buffers.

        ``compiled`` None: eager; ``double``: all in float64, without autocast.
        """
        taken, torch = self._taken, self._torch
        with ExitStack() as stack:
            if taken.mode.inference:
                stack.enter_context(torch.inference_mode())
            stack.enter_context(torch.set_grad_enabled(taken.mode.grad))
            for device, (enabled, dtype) in taken.mode.autocast.items():
                on = enabled and not double
                stack.enter_context(torch.autocast(device, dtype=dtype, enabled=on))
            copies = Copies(torch, self._frames)
            call, args, kwargs = self._copied(copies)
            if double:
                copies.to_double()
                # what the code makes itself (``torch.zeros``) is float64 too
                stack.callback(torch.set_default_dtype, torch.get_default_dtype())
                torch.set_default_dtype(torch.float64)
            stance = "force_eager" if compiled is None else "default"
            stack.enter_context(torch.compiler.set_stance(stance))
            before = {
                name: tensor.detach().clone() for name, tensor in written(call, args, kwargs, torch)
            }
            if compiled is None and not double:
                self.before = before
            self._seeds.restore()
            result = (call if compiled is None else compiled(call))(*args, **kwargs)
            self.draws = self.draws or (compiled is None and self._seeds.moved())
            found = dict(outputs(result, torch))
            for name, tensor in written(call, args, kwargs, torch):
                if not equal(tensor, before.get(name)):
                    found[name] = tensor
            # A cudagraph's results are overwritten by the next run.
            return {
                name: value.detach().clone() if isinstance(value, torch.Tensor) else value
                for name, value in found.items()
            }

    def check_room(self) -> None:
        """NotCompared if copies in float64, and in their own precision, would not fit twice."""
        originals = Originals(self._torch, self._frames)
        originals.of_callable(self._taken.call)
        originals.of((self._taken.args, self._taken.kwargs))
        tensors = list(originals.tensors())
        needed = 2 * sum(each.numel() * (8 + each.element_size()) for each in tensors)
        free = free_bytes(self._torch, tensors)
        if needed > free:
            gib = 1 << 30
            why = f"copies need about {needed / gib:.1f} GiB of memory"
            raise NotCompared(f"{why}, and {free / gib:.1f} GiB is free")

    def _copied(self, copies: Copies) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
        try:
            args, kwargs = copies.of((self._taken.args, self._taken.kwargs))
            call = copies.of_callable(self._taken.call)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            raise NotCompared(f"it can't be copied ({why})") from error
        module = getattr(call, "__self__", call)
        if isinstance(module, self._torch.nn.Module):
            for each, training in zip(module.modules(), self._taken.training, strict=False):
                each.training = training
        return call, args, kwargs


# -- what a call gives and what it writes into, as named tensors and simple values -----------------


def equal(after: Any, before: Any) -> bool:
    """Whether it holds the same values, NaN among them."""
    if before is None or after.shape != before.shape or after.dtype != before.dtype:
        return False
    return bool(((after == before) | ((after != after) & (before != before))).all())


def outputs(
    value: Any, torch: Any, name: str = "output", depth: int = 0
) -> Iterator[tuple[str, Any]]:
    """(name, tensor or simple value), containers taken apart; other objects by their type."""
    if isinstance(value, torch.Tensor):
        yield name, value.detach()
    elif isinstance(value, _SIMPLE):
        yield name, value
    elif depth < _DEPTH:
        parts: Iterable[tuple[str, Any]] = ()
        if isinstance(value, Mapping):
            parts = ((f"[{key!r}]"[:40], inner) for key, inner in value.items())
        elif isinstance(value, tuple) and hasattr(value, "_fields"):
            parts = ((f".{key}", getattr(value, key)) for key in value._fields)
        elif isinstance(value, (list, tuple)):
            parts = ((f"[{index}]", inner) for index, inner in enumerate(value))
        elif dataclasses.is_dataclass(value):
            fields = (field.name for field in dataclasses.fields(value))
            parts = ((f".{key}", getattr(value, key, None)) for key in fields)
        for key, inner in list(parts)[:MOST_OUTPUTS]:
            yield from outputs(inner, torch, name + key, depth + 1)


def written(call: Any, args: Any, kwargs: Any, torch: Any) -> Iterator[tuple[str, Any]]:
    """What a call may write into, apart from its result: arguments, and buffers of its module."""
    for key, value in (*enumerate(args), *kwargs.items()):
        for name, tensor in outputs(value, torch, f"argument {key}"):
            if isinstance(tensor, torch.Tensor):
                yield f"{name} (written)", tensor
    module = getattr(call, "__self__", call)
    if isinstance(module, torch.nn.Module):
        for name, buffer in module.named_buffers():
            yield f"buffer {name} (written)", buffer


# -- the state of random generators ----------------------------------------------------------------


class Seeds:
    """The state of every random generator that scripts use, as it was when this was made."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._numpy = sys.modules.get("numpy.random")
        self._states = self._now()

    def restore(self) -> None:
        """Back to it."""
        host, devices, python, numpy = self._states
        self._torch.set_rng_state(host)
        if devices:
            self._torch.cuda.set_rng_state_all(devices)
        random.setstate(python)
        if self._numpy is not None:
            self._numpy.set_state(numpy)

    def moved(self) -> bool:
        """Whether torch has drawn a random number since."""
        host, devices, *_ = self._now()
        pairs = zip((host, *devices), (self._states[0], *self._states[1]), strict=True)
        return any(not self._torch.equal(now, then) for now, then in pairs)

    def _now(self) -> tuple[Any, list[Any], Any, Any]:
        cuda = self._torch.cuda
        devices = cuda.get_rng_state_all() if cuda.is_initialized() else []
        numpy = self._numpy.get_state() if self._numpy is not None else None
        return self._torch.get_rng_state(), devices, random.getstate(), numpy


# -- copies ----------------------------------------------------------------------------------------


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
