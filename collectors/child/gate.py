"""The counting wrapper around one compiled callable. Every line here runs on every call."""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable
from threading import get_ident
from types import TracebackType
from typing import Any, Protocol

from .state import Control, Gate, Region

Opened = tuple[int, int, int, Any]  # Unix µs, perf_counter_ns, compiles so far, profiler mark


class Listener(Protocol):
    """What the wrapper reports to, off the fast path."""

    def before(self, gate: Gate, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Opened | None:
        """An outermost call begins: a step edge may be here. None: don't time the call."""

    def after(
        self, region: Region, opened: Opened, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """The call that ``before`` opened has ended."""

    def nested(self, region: Region) -> Opened:
        """A call begins inside another region's, or in another thread, while watching."""

    def after_nested(self, region: Region, opened: Opened) -> None:
        """The call that ``nested`` opened has ended."""


def counting(gate: Gate, control: Control, listener: Listener) -> Callable[..., Any]:
    """A function that calls ``gate.target`` and counts; it adds one frame to a traceback."""
    region, take = gate.region, next  # what a closure holds is found faster than a builtin

    def call(*args: Any, **kwargs: Any) -> Any:
        if take(region.passes, False):
            return gate.target(*args, **kwargs)
        if control.depth or get_ident() != control.thread:
            control.flat = False
            if get_ident() != control.thread and control.joins(get_ident()):
                return _in_any_thread(gate, control, listener, args, kwargs)
            control.elsewhere += control.threaded
            region.nested += 1
            if not control.watching or control.only not in (None, get_ident()):
                return gate.target(*args, **kwargs)
            inside = listener.nested(region)
            try:
                return gate.target(*args, **kwargs)
            finally:
                listener.after_nested(region, inside)
        region.counted += 1
        region.left -= 1
        opened = listener.before(gate, args, kwargs) if region.left < 0 else None
        control.depth = 1
        try:
            return gate.target(*args, **kwargs)
        finally:
            control.depth = 0
            if control.threaded:  # since this call began
                control.inside.discard(get_ident())
            if opened is not None:
                listener.after(region, opened, args, kwargs)

    return call


def _in_any_thread(
    gate: Gate,
    control: Control,
    listener: Listener,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """An outermost call, where those of every thread count."""
    region, me, opened = gate.region, get_ident(), None
    if control.at_edge:  # of another thread
        with control.lock:
            pass
    region.counted += 1
    region.left -= 1
    control.elsewhere += me != control.edge_thread
    if region.left < 0:
        with control.lock:
            if control.only not in (None, me):  # another thread is profiled by now
                region.counted -= 1
                region.nested += 1
                return gate.target(*args, **kwargs)
            region.left -= region.left >= 0  # the edge was another thread's call meanwhile
            if region.left < 0:
                control.at_edge = True
                try:
                    opened = listener.before(gate, args, kwargs)
                finally:
                    control.at_edge = False
    control.inside.add(me)
    try:
        return gate.target(*args, **kwargs)
    finally:
        control.inside.discard(me)
        if opened is not None:
            with control.lock:
                listener.after(region, opened, args, kwargs)


def region_of(tb: TracebackType | None) -> Region | None:
    """Whose call an exception passed through on its way out; the innermost of several."""
    for frame, _ in reversed(list(traceback.walk_tb(tb))):
        if frame.f_code.co_filename == __file__:
            region: Region | None = frame.f_locals.get("region")
            if region is not None:
                return region
    return None


def dress(call: Callable[..., Any], compiled: Callable[..., Any]) -> Callable[..., Any]:
    """Make ``call`` look as what torch.compile gave back, to the user and to Dynamo.

    Dynamo never traces a function that has ``_torchdynamo_inline``: it inlines what that names.
    ``_torchdynamo_wrapper_id`` must be the id of the function that carries it, or a second
    torch.compile would not unwrap it.
    """
    functools.update_wrapper(call, compiled)
    attributes = call.__dict__
    if hasattr(compiled, "__wrapped__"):
        attributes["__wrapped__"] = compiled.__wrapped__
    else:
        attributes.pop("__wrapped__", None)
    if attributes.get("_torchdynamo_wrapper_id") == id(compiled):
        attributes["_torchdynamo_wrapper_id"] = id(call)
    return call
