"""Intervals in which torch compiles, from torch._dynamo.callback."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

from .recorder import Recorder
from .state import Control


class Compiles:
    """Counts compiles in ``control.compiles`` and writes one ``compile`` event each."""

    def __init__(self, control: Control, recorder: Recorder, step: Callable[[], int]) -> None:
        self._control = control
        self._recorder = recorder
        self._step = step
        self._started: tuple[float, int, float] | None = None

    def listen(self) -> None:
        """Register with Dynamo if it has been imported; again after torch._dynamo.reset()."""
        handler = getattr(sys.modules.get("torch._dynamo.callback"), "callback_handler", None)
        if handler is None or self._began in handler.start_callbacks:
            return
        handler.register_start_callback(self._began)
        handler.register_end_callback(self._ended)

    def _began(self, *_args: Any) -> None:
        self._started = (time.time_ns() / 1000, time.perf_counter_ns(), _cpu_s())

    def _ended(self, *args: Any) -> None:
        if self._control.off:
            return
        self._control.compiles += 1
        about = args[0] if args else None
        trigger = getattr(getattr(about, "callback_trigger", None), "name", None)
        started, self._started = self._started, None
        if started is None:
            return
        self._recorder.write(
            "compile",
            trigger=trigger.lower() if trigger else None,
            compile_id=getattr(about, "compile_id", None),
            started_us=started[0],
            duration_ms=(time.perf_counter_ns() - started[1]) / 1e6,
            cpu_ms=(_cpu_s() - started[2]) * 1e3,
            step=self._step(),
        )


def current_compile_id() -> str | None:
    """Of the compile that goes on in this thread, as torch writes it; None where none does."""
    context = getattr(sys.modules.get("torch._guards"), "CompileContext", None)
    try:
        found = context.current_compile_id()  # type: ignore[union-attr]
    except (AttributeError, AssertionError):
        return None
    return None if found is None else str(found)


def _cpu_s() -> float:
    """CPU seconds of this process and of its children that have ended (C++ compilers)."""
    spent = os.times()
    return time.process_time() + spent.children_user + spent.children_system
