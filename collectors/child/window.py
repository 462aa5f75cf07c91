"""Profiler windows: a few steps under torch.profiler, marked, synchronised at both ends."""

from __future__ import annotations

import gzip
import inspect
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import get_ident
from typing import Any

from .frames import Frames, Sources
from .marks import Collections, KernelMarks, LineMarks
from .memory import Pile, Reserve, page_faults
from .plan import Purpose
from .recorder import Recorder, write_whole
from .regions import hide_from_dynamo

#: A longer window's trace as it is written: some 50,000 events, of which torch holds 200 MB.
MOST_TRACE_BYTES = 1.5e6


class Window:
    """One window at a time. ``mark*`` and ``own_work`` give the ranges that the trace carries."""

    def __init__(self, torch: Any, recorder: Recorder, frames: Frames, sources: Sources) -> None:
        self._torch = torch
        self._recorder = recorder
        self._frames = frames
        self._sources = sources
        self._fast = _fast_range(torch)
        self._collections = Collections(self._fast)
        self._kernels = KernelMarks(self._fast)
        self._reserve = Reserve()
        self._pile = Pile(torch)
        self._profiler: Any = None
        self._prepared: Any = None
        self._lines: LineMarks | None = None
        self._step_mark: Any = None
        self._own_mark: Any = None
        self._stance = ""
        self._purpose: Purpose = "time"
        self._steps = 0
        self._step = 0
        self._started_us = 0.0
        self._started_ns = 0
        self._faults = 0
        self._thread = 0
        self._files: dict[str, list[Path]] = {}
        self._anchor: tuple[int | None, str | None] = None, None
        self._anchors: list[int | None] = []
        self.most_steps: dict[str, float] = {}  # that one may have, by stance
        self.device = False
        self.replayed = False

    @property
    def open(self) -> bool:
        return self._profiler is not None

    def of(self, region_id: int | None, step_kind: str | None) -> None:
        """Whose steps the windows from here on are of; None: an optimizer's."""
        self._anchor = region_id, step_kind
        if region_id not in self._anchors:
            self._anchors.append(region_id)

    @property
    def of_each(self) -> int:
        """How many traces for time there are, of these steps, of either stance."""
        stems = map(self._stem, ("eager", "compiled"))
        return min(len(self._files.get(stem, ())) for stem in stems)

    def prepare(self, stance: str) -> None:
        """Attach the profiler; ``start`` then opens the window, if this has not failed."""
        self._stance, self._purpose, self._steps = stance, "time", 0
        try:
            self._prepared = self._make()
            with _quiet_kineto():
                self._prepared.prepare_trace()
        except Exception as error:  # noqa: BLE001 - the user's script must run whatever fails here
            self._prepared = None
            self._write(error=error)

    def start(self, stance: str, purpose: Purpose, *, few_faults: bool = False) -> None:
        """Start the profiler here; a failure is written as the window's ``error``.

        ``few_faults``: without a profiler these steps touch hardly any memory for the first time.
        """
        prepared, self._prepared = self._prepared, None
        self._stance, self._purpose, self._steps, self._lines = stance, purpose, 0, None
        if purpose == "lines" and sys.gettrace() is not None:
            why = "a debugger or coverage tool already traces the script (sys.settrace)"
            self._recorder.note(f"marking source lines in one step ({stance})", why)
            return
        try:
            self._profiler = prepared or self._make()
            self._thread = get_ident()
            if few_faults and not self.device:
                self._reserve.take()
            self._synchronise()
            self._pile.begin(device=self.device)
            self._started_us = time.time_ns() / 1000
            self._started_ns = time.perf_counter_ns()
            with _quiet_kineto():
                (self._profiler.start_trace if prepared else self._profiler.start)()
            self._hide()
            self._kernels.start()
            self._collections.start()
            self._faults = page_faults()
        except Exception as error:  # noqa: BLE001 - the user's script must run whatever fails here
            self._profiler = None
            self._kernels.stop()
            self._reserve.give_back()
            self._write(error=error)

    def stop(self, *, step_ended: bool = True) -> None:
        """Stop it, write the trace and the ``profile`` event.

        Where the script ended in the middle of a step, what came until then is no step's time, and
        the window counts only where its stance has no earlier one.
        """
        if self._lost():
            return
        profiler, self._profiler = self._profiler, None
        if profiler is None:
            self._abandon()
            return
        cut = self._step_mark is not None and not step_ended
        try:
            self._end_marks()
            faults = None if cut else page_faults() - self._faults
            self._synchronise()
            host_ms = (time.perf_counter_ns() - self._started_ns) / 1e6
            fitting = self._pile.most_steps(self._steps)
            # Else torch makes an object of each event here: ten times a trace's memory and time.
            profiler.profiler.acc_events = False
            profiler.stop()
            self._reserve.give_back()
            if cut and self._files.get(self._name):
                return
            self._steps -= cut
            if cut and not self._steps:
                raise RuntimeError("the script ended in the first step")
            path = self._export(profiler)
            if cut:  # the last step's mark gets another name: it is read as no step's
                old, new = (f'"traceview {word} {self._step}"'.encode() for word in ("step", "cut"))
                text = gzip.decompress(path.read_bytes())
                write_whole(path, gzip.compress(text.replace(old, new)))
        except Exception as error:  # noqa: BLE001 - the user's script must run whatever fails here
            self._reserve.give_back()
            self._write(error=error)
        else:
            if self._purpose == "time":
                written = MOST_TRACE_BYTES * self._steps / max(1, path.stat().st_size)
                self.most_steps[self._stance] = min(written, fitting)
            self._write(f"profile/{path.name}", host_ms, faults)
        finally:
            del profiler
            self._pile.clear()

    def _lost(self) -> bool:
        """Whether another thread opened the window: only there it can be closed. It is given up."""
        if self._profiler is None or get_ident() == self._thread:
            return False
        self._profiler = self._step_mark = self._own_mark = self._lines = None
        self._kernels.stop()
        self._collections.stop()
        self._reserve.give_back()
        self._write(error=RuntimeError("the profiled thread ended inside the window"))
        return True

    def _abandon(self) -> None:
        """Let go of a profiler that was attached for nothing."""
        prepared, self._prepared = self._prepared, None
        if prepared is None:
            return
        try:
            prepared.start_trace()
            prepared.stop()
        except Exception as error:  # noqa: BLE001 - the user's script must run whatever fails here
            self._recorder.note("detaching the profiler", error)

    def mark_step(self, step: int) -> None:
        """A step begins: end the last step's range, begin this one's.

        The window ends here, with fewer steps than planned, where it takes too much memory.
        """
        if self._profiler is None or self._lost():
            return
        # Looking takes time: after 1, 2, 4, 8, … steps.
        if self._steps and self._steps & (self._steps - 1) == 0:
            with self.own_work():
                full = self._pile.most_steps(self._steps) < self._steps
            if full:
                self.stop()
                return
        self._end_step()
        self._steps += 1
        self._step = step
        self._step_mark = self._fast(f"traceview step {step}")
        if self._purpose == "lines" and self._lines is None:
            self._lines = LineMarks(self._frames, self._fast)
            self._lines.start(sys._getframe(1))

    def mark_call(self, region_id: int) -> Any:
        """Begin the range of an outermost call; end it with ``__exit__(None, None, None)``."""
        return self._fast(f"traceview call {region_id}")

    @contextmanager
    def own_work(self) -> Iterator[None]:
        """A range around what the collector does inside a step; `stop` may end it before."""
        if self._profiler is not None and not self._lost():
            self._own_mark = self._fast("traceview own")
        try:
            yield
        finally:
            self._end_own()

    def _end_own(self) -> None:
        mark, self._own_mark = self._own_mark, None
        if mark is not None:
            mark.__exit__(None, None, None)

    def _end_step(self) -> None:
        mark, self._step_mark = self._step_mark, None
        if mark is not None:
            mark.__exit__(None, None, None)

    def _end_marks(self) -> None:
        """The step before the lines: readers end what is still open with the step."""
        self._collections.stop()
        self._kernels.stop()
        self._end_own()
        self._end_step()
        if self._lines is not None:
            self._lines.stop()

    def _make(self) -> Any:
        profiler = self._torch.profiler
        activities = [profiler.ProfilerActivity.CPU]
        if self.device:
            activities.append(profiler.ProfilerActivity.CUDA)
        known = inspect.signature(profiler.profile.__init__).parameters
        quiet = {"acc_events": True} if "acc_events" in known else {}  # else it warns of one cycle
        return profiler.profile(activities=activities, record_shapes=True, **quiet)

    def _hide(self) -> None:
        """Dynamo's frame hook sees trace functions and callbacks too, between broken graphs."""
        methods = (*vars(LineMarks).values(), *vars(Collections).values(), *vars(Window).values())
        for each in (self._fast, Frames.is_user, *methods):
            function = getattr(each, "__wrapped__", each)
            if hasattr(function, "__code__"):
                hide_from_dynamo(function)

    @property
    def _name(self) -> str:
        return self._stem(self._stance) + ("-lines" if self._purpose == "lines" else "")

    def _stem(self, stance: str) -> str:
        """``eager-4711``; with whose steps it is of, ``eager-4711-of-2``, after the first's."""
        anchor = self._anchor[0]
        of = f"-of-{'optimizer' if anchor is None else anchor}"
        return f"{stance}-{self._recorder.pid}{of if anchor in self._anchors[1:] else ''}"

    def _synchronise(self) -> None:
        if self.device:
            self._torch.cuda.synchronize()

    def _export(self, profiler: Any) -> Path:
        folder = self._recorder.raw / "profile"
        folder.mkdir(parents=True, exist_ok=True)
        earlier = self._files.setdefault(self._name, [])
        number = f"-{len(earlier) + 1}" if earlier else ""
        path = folder / f"{self._name}{number}.json.gz"
        scratch = folder / f".{path.name}.part.gz"  # torch packs what ends in .gz
        profiler.export_chrome_trace(str(scratch))
        scratch.chmod(0o600)
        scratch.replace(path)
        if not self.replayed:  # only the last is read, but the script's own beside a replay's
            for each in earlier:
                each.unlink(missing_ok=True)
        earlier.append(path)
        return path

    def _write(
        self,
        file: str | None = None,
        host_ms: float | None = None,
        faults: int | None = None,
        error: Exception | None = None,
    ) -> None:
        lines, self._lines = self._lines, None
        marked: dict[str, Any] = {}
        if lines is not None:
            for each in lines.files:
                self._sources.keep(each)
            if lines.why_ended is not None:
                what = f"marking all source lines in one step ({self._stance})"
                self._recorder.note(what, lines.why_ended)
            marked = {"line_files": lines.files, "lines": lines.lines}
            marked["lines_ended"] = lines.why_ended
        self._recorder.write(
            "profile",
            stance=self._stance,
            purpose=self._purpose,
            anchor_region_id=self._anchor[0],
            step_kind=self._anchor[1],
            steps=self._steps,
            replayed=self.replayed,
            started_us=self._started_us or None,
            host_ms=host_ms,
            page_faults=faults,
            file=file,
            error=None if error is None else f"{type(error).__name__}: {error}",
            **marked,
        )


def _fast_range(torch: Any) -> Callable[[str], Any]:
    """What begins a range at the least cost: about 3 µs, a fifth of record_function's."""
    profiler = torch._C._profiler
    make = getattr(profiler, "_RecordFunctionFast", torch.autograd.profiler.record_function)

    def begin(name: str) -> Any:
        range_ = make(name)
        range_.__enter__()
        return range_

    return begin


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
