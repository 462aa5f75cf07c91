"""Profiler windows: a few steps under torch.profiler, marked, synchronised at both ends."""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .recorder import Recorder


class Window:
    """One window at a time. ``mark_*`` give the ranges that the trace carries."""

    def __init__(self, torch: Any, recorder: Recorder) -> None:
        self._torch = torch
        self._recorder = recorder
        self._profiler: Any = None
        self._step_mark: Any = None
        self._stance = ""
        self._steps = 0
        self._started_us = 0.0
        self._started_ns = 0
        self._files: dict[str, int] = {}
        self.device = False

    @property
    def open(self) -> bool:
        return self._profiler is not None

    def start(self, stance: str) -> None:
        """Start the profiler here; a failure is written as the window's ``error``."""
        self._stance, self._steps = stance, 0
        try:
            self._profiler = self._make()
            self._synchronise()
            self._started_us = time.time_ns() / 1000
            self._started_ns = time.perf_counter_ns()
            with _quiet_kineto():
                self._profiler.start()
        except Exception as error:  # noqa: BLE001 - the user's script must run whatever fails here
            self._profiler = None
            self._write(None, 0.0, error)

    def stop(self) -> None:
        """Stop it, write the trace and the ``profile`` event."""
        self._end_step()
        profiler, self._profiler = self._profiler, None
        if profiler is None:
            return
        try:
            self._synchronise()
            host_ms = (time.perf_counter_ns() - self._started_ns) / 1e6
            profiler.stop()
            file = self._export(profiler)
        except Exception as error:  # noqa: BLE001 - the user's script must run whatever fails here
            self._write(None, 0.0, error)
        else:
            self._write(file, host_ms, None)

    def mark_step(self, step: int) -> None:
        """A step begins: end the last step's range, begin this one's."""
        if self._profiler is not None:
            self._end_step()
            self._steps += 1
            self._step_mark = self.mark(f"traceview step {step}")

    def mark(self, name: str) -> Any:
        """Begin a range; end it with ``__exit__(None, None, None)``."""
        range_ = self._torch.autograd.profiler.record_function(name)
        range_.__enter__()
        return range_

    def _end_step(self) -> None:
        mark, self._step_mark = self._step_mark, None
        if mark is not None:
            mark.__exit__(None, None, None)

    def _make(self) -> Any:
        profiler = self._torch.profiler
        activities = [profiler.ProfilerActivity.CPU]
        if self.device:
            activities.append(profiler.ProfilerActivity.CUDA)
        known = inspect.signature(profiler.profile.__init__).parameters
        quiet = {"acc_events": True} if "acc_events" in known else {}  # else it warns of one cycle
        return profiler.profile(activities=activities, record_shapes=True, **quiet)

    def _synchronise(self) -> None:
        if self.device:
            self._torch.cuda.synchronize()

    def _export(self, profiler: Any) -> str:
        folder = self._recorder.raw / "profile"
        folder.mkdir(parents=True, exist_ok=True)
        taken = self._files.get(self._stance, 0)
        self._files[self._stance] = taken + 1
        again = f"-{taken + 1}" if taken else ""
        name = f"{self._stance}-{self._recorder.pid}{again}.json.gz"
        profiler.export_chrome_trace(str(folder / name))
        return f"profile/{name}"

    def _write(self, file: str | None, host_ms: float, error: Exception | None) -> None:
        self._recorder.write(
            "profile",
            stance=self._stance,
            steps=self._steps,
            started_us=self._started_us or None,
            host_ms=host_ms if error is None else None,
            file=file,
            error=None if error is None else f"{type(error).__name__}: {error}",
        )


def cupti_is_torn_down() -> bool:
    """Whether Kineto detaches CUPTI after a window; while attached it slows every launch.

    Kineto reads the variable. The parent sets it to 1; torch sets it to 0 where a cudagraph would
    not survive (``torch/profiler/profiler.py``).
    """
    return os.environ.get("TEARDOWN_CUPTI") == "1"


@contextmanager
def _quiet_kineto() -> Iterator[None]:
    """Kineto reads this variable at its first start and else prints its own progress on stderr."""
    name = "KINETO_LOG_LEVEL"
    if name in os.environ:
        yield
        return
    os.environ[name] = "6"
    try:
        yield
    finally:
        os.environ.pop(name, None)
