"""Copies of a callable and all that it computes with: its module, or what a function refers to.

A function of the user's finds its modules and tensors in cells, globals and defaults, often by way
of helpers. Its copy has the same code, and copies of those in their place.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from .frames import Frames

_PLAIN = (list, tuple, dict)
_CHANGEABLE = (list, dict, set)
_DEPTH = 4
#: Hooks of a module, which may be functions of the user's.
_HOOKS = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")


class Copies:
    """One set of copies; what was shared between originals is shared between copies.

    ``holders``: (name, copy) of what a callable computes with; the name of its own module is "".
    ``scattered``: functions of several modules were copied, of which code that the script compiled
    would find the originals.
    """

    def __init__(self, torch: Any, frames: Frames) -> None:
        self._torch = torch
        self._frames = frames
        self._memo: dict[int, Any] = {}
        self._functions: dict[int, FunctionType] = {}
        self._containers: dict[int, tuple[Any, Any]] = {}
        self._globals: dict[int, dict[str, Any]] = {}
        self._modules: list[ModuleType] = []
        self.holders: list[tuple[str, Any]] = []

    @property
    def scattered(self) -> bool:
        return len(self._globals) > 1

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
            return MethodType(function, self._held(call.__self__, "self"))
        if isinstance(call, functools.partial):
            inner = self.of_callable(call.func)
            return functools.partial(inner, *self.of(call.args), **self.of(call.keywords))
        return self._held(call, "")

    def held(self) -> Iterator[tuple[str, str, Any]]:
        """(kind, name, tensor) of all that callables compute with; each tensor once.

        Kinds: parameter, buffer, tensor.
        """
        seen: set[int] = set()
        for name, value in self.holders:
            for kind, inner, tensor in tensors_in(value, self._torch, name):
                if id(tensor) not in seen:
                    seen.add(id(tensor))
                    yield kind, inner, tensor

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

    def _held(self, value: Any, name: str) -> Any:
        module = self._torch.nn.Module
        copied = self.of(value)
        self.holders.append(("" if isinstance(copied, module) else name, copied))
        own = copied is not value and isinstance(copied, module)
        for each in copied.modules() if own else ():
            for kind in _HOOKS:
                for key, hook in getattr(each, kind, {}).items():
                    getattr(each, kind)[key] = self._referred(hook)
        return copied

    def _function(self, function: FunctionType) -> FunctionType:
        if id(function) in self._functions:
            return self._functions[id(function)]
        cells = tuple(CellType() for _ in function.__closure__ or ())
        names = self._names_of(function.__globals__)
        code, name = function.__code__, function.__name__
        copied = FunctionType(code, names, name, None, cells or None)
        self._functions[id(function)] = copied  # before the rest: functions may be recursive
        copied.__dict__.update(function.__dict__)
        copied.__qualname__ = function.__qualname__
        copied.__defaults__ = self._referred(function.__defaults__)
        copied.__kwdefaults__ = self._referred(function.__kwdefaults__)
        free = code.co_freevars
        for name, cell, original in zip(free, cells, function.__closure__ or (), strict=True):
            try:
                cell.cell_contents = self._referred(original.cell_contents)
            except ValueError:  # an empty cell: a variable that is not bound yet
                continue
            self.holders.append((name, cell.cell_contents))
        for known in sorted(set(_names(code)) & set(names)):
            names[known] = self._referred(function.__globals__[known])
            self.holders.append((known, names[known]))
        return copied

    def _names_of(self, original: dict[str, Any]) -> dict[str, Any]:
        """A copy of a module's names, the same for all its functions.

        Dynamo finds those of a second module by importing it: they are those of a module, too.
        """
        if id(original) not in self._globals:
            names = dict(original)
            if self._globals:
                module = ModuleType(f"{original.get('__name__', '')}_copy_{id(names)}")
                vars(module).update({**names, "__name__": module.__name__})
                names = vars(module)
                self._modules.append(module)
            self._globals[id(original)] = names
        return self._globals[id(original)]

    @contextmanager
    def importable(self) -> Iterator[None]:
        """Copies of modules can be imported."""
        own = {module.__name__: module for module in self._modules}
        sys.modules.update(own)
        try:
            yield
        finally:
            for name in own:
                sys.modules.pop(name, None)

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
        if type(value) in _CHANGEABLE:  # so that what is put into it stays out of the user's
            known = self._containers.setdefault(id(value), (value, type(value)(value)))
            return known[1]
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

    def objects(self) -> list[Any]:
        """Modules, those within them, and the object that a method is of; each once."""
        from torch.utils._pytree import tree_leaves

        torch, found = self._torch, dict[int, Any]()
        leaves = (leaf for value in self._found for leaf in tree_leaves(value))
        for owner in leaves:
            if isinstance(owner, (type, FunctionType, torch.Tensor)) or not hasattr(
                owner, "__dict__"
            ):
                continue
            modules = (m for m in (owner, *vars(owner).values()) if isinstance(m, torch.nn.Module))
            for each in (owner, *(inner for module in modules for inner in module.modules())):
                found.setdefault(id(each), each)
        return list(found.values())


def marked_constant(call: Any, objects: Iterable[Any], frames: Frames) -> FunctionType | None:
    """A function of the user's that ``call`` may reach, and that runs only while it is compiled.

    ``assume_constant_result`` has marked it: compiled code keeps what it gave then.
    """
    owners = [one for each in objects for one in (each, *vars(each).values())]
    classes = list(dict.fromkeys(found for one in owners for found in type(one).__mro__))
    seen: set[int] = set()
    todo = [call, *(vars(each).get("forward") for each in classes)]
    for value in todo:  # it grows
        function = getattr(value, "__func__", value)
        if not isinstance(function, FunctionType) or id(function) in seen:
            continue
        seen.add(id(function))
        code, names = function.__code__, function.__globals__
        if frames.is_user(code.co_filename):
            if getattr(function, "_dynamo_marked_constant", False):
                return function
            wanted = set(_names(code))
            modules = [names[name] for name in wanted if isinstance(names.get(name), ModuleType)]
            places = (names, *map(vars, (*classes, *modules)))
            todo += [place[name] for place in places for name in wanted if name in place]
            todo += map(content, function.__closure__ or ())
    return None


def content(cell: CellType) -> Any:
    """What a variable of an enclosing function holds; None where it is not bound yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def tensors_in(value: Any, torch: Any, name: str, depth: int = 0) -> Iterator[tuple[str, str, Any]]:
    """(kind, name, tensor) in modules, containers, dataclasses and a plain object ``self``."""
    parts: list[tuple[str, Any]] = []
    if isinstance(value, torch.Tensor):
        yield ("parameter" if isinstance(value, torch.nn.Parameter) else "tensor"), name, value
    elif isinstance(value, torch.nn.Module):
        dot = f"{name}." if name else ""
        yield from (("parameter", dot + own, each) for own, each in value.named_parameters())
        yield from (("buffer", dot + own, each) for own, each in value.named_buffers())
    elif depth >= _DEPTH or isinstance(value, (type, FunctionType, torch.optim.Optimizer)):
        return
    elif isinstance(value, Mapping):
        parts = [(f"{name}[{key!r}]"[:80], inner) for key, inner in list(value.items())[:64]]
    elif isinstance(value, (list, tuple)):
        parts = [(f"{name}[{index}]", inner) for index, inner in enumerate(value[:64])]
    elif depth == 0 and name == "self":
        parts = [(f"{name}.{key}", inner) for key, inner in vars(value).items()]
    elif dataclasses.is_dataclass(value):
        fields = (field.name for field in dataclasses.fields(value))
        parts = [(f"{name}.{key}", getattr(value, key, None)) for key in fields]
    for own, inner in parts:
        yield from tensors_in(inner, torch, own, depth + 1)


def _names(code: CodeType) -> Iterator[str]:
    """Names that code may look up in its globals, in functions within it too."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
