"""What is compiled in other places than the script compiles, while a trial is on.

Functions outside of what it compiles, compiled as well; and the blocks within, each alone.

All that have a reference to a function get the compiled one: its code hands the call over to a
name that is put into its globals meanwhile, which Dynamo follows as it follows a decorator. The
first call runs as it is: one that calls what the script compiles is no such function, as its calls
are what steps are counted by. What it was given then is kept, and run again on copies at the end.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from contextlib import ExitStack
from traceback import walk_stack
from types import CodeType, FunctionType
from typing import Any, Protocol

from .compiles import copied
from .frames import Frames
from .patches import functions
from .recorder import said
from .regions import hide_from_dynamo
from .state import Control, Gate, Region
from .taken import Taker

#: Code of these kinds returns before it has run.
_RESUMABLE = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class NoFunction(Exception):
    """Why no function of that name can be compiled as well."""


class Trial(Protocol):
    """What it needs of the trial that it is of."""

    @property
    def runs(self) -> bool:
        """Whether compiled code is to run."""

    def compiled_alone(self, original: Any) -> Any:
        """A function, compiled."""

    def end(self, state: str, why: str | None) -> None:
        """The trial is over."""


class Also:
    """One of them. ``calls``: how often it was called while the trial was on."""

    def __init__(
        self, torch: Any, frames: Frames, control: Control, trial: Trial, name: str
    ) -> None:
        self.name, self.function = name, _named(name, frames, control)
        self.calls = 0
        self._control, self._trial = control, trial
        plain = self._copy()
        # Under a number that no region has: nothing else is known of it.
        self._gate = Gate(Region(-1), plain, plain)
        self.taker = Taker(torch, frames, sparing=True)
        self._target: Callable[..., Any] | None = None

    def put_in(self, stack: ExitStack) -> None:
        """The name that its code hands calls over to, until the end of ``stack``."""
        names = self.function.__globals__
        stack.callback(names.pop, self.key, None)
        self._target = names[self.key] = self._target or self._made()

    def forget(self) -> None:
        """What was compiled; the next call compiles once more."""
        self._target = None

    @property
    def code(self) -> CodeType:
        """What takes the place of the function's own code."""
        scope: dict[str, Any] = {}
        line = f"def call(*args, **kwargs): return {self.key}(*args, **kwargs)"
        exec(line, scope)
        own, made = self.function.__code__, scope["call"].__code__
        return made.replace(  # type: ignore[no-any-return]
            co_name=own.co_name,
            co_filename=own.co_filename,
            co_firstlineno=own.co_firstlineno,
            co_freevars=own.co_freevars,
        )

    @property
    def key(self) -> str:
        """The name in the function's globals."""
        return f"__traceview_{self.name.replace('.', '_')}"

    def _made(self) -> Callable[..., Any]:
        """What is called in its place."""
        trial, plain, call = self._trial, self._copy(), None

        def target(*args: Any, **kwargs: Any) -> Any:
            nonlocal call
            self.calls += 1
            if self.calls == 1:
                return self._first(plain, args, kwargs)
            if trial.runs:
                try:
                    call = call or trial.compiled_alone(plain)
                    return call(*args, **kwargs)
                except Exception as error:  # noqa: BLE001 - the remedy's, unless eager raises it too
                    trial.end("failed", said(error))
            return plain(*args, **kwargs)

        hide_from_dynamo(target)
        target._torchdynamo_inline = plain  # type: ignore[attr-defined]
        return target

    def _first(self, plain: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        before = self._control.region_calls
        self.taker.look(self._gate, args, kwargs, "steady")
        try:
            return plain(*args, **kwargs)
        finally:
            if self._control.region_calls != before:
                why = f"{self.name}() calls what the script compiles"
                self._trial.end("not_applicable", why)

    def _copy(self) -> FunctionType:
        """The function as the script has it, with code of its own: torch keeps results by code."""
        own = self.function
        made = FunctionType(
            copied(own.__code__), own.__globals__, own.__name__, own.__defaults__, own.__closure__
        )
        made.__kwdefaults__, made.__qualname__ = own.__kwdefaults__, own.__qualname__
        made.__module__ = own.__module__
        return made


def _named(name: str, frames: Frames, control: Control) -> FunctionType:
    """The one function of the user's that is named so, or torch's, by its module."""
    if name.startswith("torch."):
        module, _, last = name.rpartition(".")
        try:
            found = [getattr(importlib.import_module(module), last, None)]
        except ImportError:
            found = []
    else:
        alive = (each for each in functions() if each.__qualname__ == name)
        theirs = (each for each in alive if frames.is_user(each.__code__.co_filename))
        # Of a decorated function the one within, which has the code: its wrapper borrows the name.
        last = name.rpartition(".")[2]
        by_code = {each.__code__: each for each in theirs if each.__code__.co_name == last}
        found = list(by_code.values())
    plain = [each for each in found if type(each) is FunctionType]
    if not plain:
        raise NoFunction(f"no function of Python's is named {name}")
    if len(plain) > 1:
        raise NoFunction(f"several functions are named {name}")
    function, code = plain[0], plain[0].__code__
    if code.co_flags & _RESUMABLE:
        raise NoFunction(f"{name}() returns before it has run")
    compiled = (gate.original for gate in control.gates)
    if any(getattr(each, "__code__", None) is code for each in compiled):
        raise NoFunction(f"{name}() is compiled already")
    stacks = sys._current_frames().values()
    if any(each.f_code is code for stack in stacks for each, _ in walk_stack(stack)):
        raise NoFunction(f"{name}() calls what the script compiles")
    return function


def in_blocks(
    original: Callable[..., Any], calls: list[tuple[dict[str, Any], Callable[..., Any]]]
) -> Callable[..., Any]:
    """``original``, in which these modules are called so, as ``torch.nn.Module.compile`` has it."""

    def inside(*args: Any, **kwargs: Any) -> Any:
        for attributes, call in calls:
            attributes["_compiled_call_impl"] = call
        try:
            return original(*args, **kwargs)
        finally:
            for attributes, _ in calls:
                del attributes["_compiled_call_impl"]

    hide_from_dynamo(inside)
    return inside
