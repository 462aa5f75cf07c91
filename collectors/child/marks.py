"""What is marked in the profiler's trace while a window is open: ranges that nest as calls do.

The user's source lines: CPython's trace function (``sys.settrace``) says that a line begins; until
the next line of the same frame, or its return, a range is open. So what the profiler records lies
in the innermost of the user's lines that ran it. One thread is traced: the one that calls `start`.
Lines that have run a thousand times in a step take turns in one range, and a function that begins
with such a line gets none: what it does lies in the line that calls it.

Generated C++ kernels: Inductor can write their names into them (``cpp.enable_kernel_profile``), but
then the C++ compiler takes up to three times as long for each: a header then comes before the
precompiled one, which is of no use any more. So the generated modules call marked kernels while a
window is open. Not seen are kernels that generated C++ calls (``cpp_wrapper``).

Garbage collections: by ``gc.callbacks``.
"""

from __future__ import annotations

import gc
import os
import sys
import tempfile
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from .frames import Frames, outward
from .regions import hide_from_dynamo

MAX_LINES = 20_000  # ranges of a step; with more, a trace is too large to read
MAX_EVENTS = 1_000_000  # line events of a step; a step in pure Python would take for ever
HOT = 1_000  # times that a line has run in a step, from which on its loop is one range

_KERNELS = "cpp_"  # torch/_inductor/codegen: cpp_fused_…, cpp_bmm_…, cpp_CppMicroGemm…, cpp_flex…

TraceFunction = Callable[[FrameType, str, Any], Any]


class LineMarks:
    """Ranges ``traceview line F:L`` between `start` and `stop`; F is a place in ``files``.

    ``begin`` opens a range of that name and gives what closes it by ``__exit__``. ``why_ended`` is
    None unless marking ended before `stop`.
    """

    def __init__(self, frames: Frames, begin: Callable[[str], Any]) -> None:
        self._frames = frames
        self._begin = begin
        self._open: list[tuple[FrameType, int, Any]] = []  # frame, line and range, outermost first
        self._indices: dict[str, int | None] = {}
        self._generated = generated_code()
        self._marking = False
        # one object each: frames and the interpreter hold borrowed references while it runs
        self._on_call: TraceFunction = self._called
        self._on_line: TraceFunction = self._ran
        self.files: list[str] = []
        self._runs: dict[tuple[CodeType, int | None], int] = {}
        self._events = 0
        self.lines = 0
        self.why_ended: str | None = None

    def start(self, caller: FrameType) -> None:
        """Begin with the lines that are being run in ``caller`` and around it."""
        self._marking = True
        try:
            around = [each for each in outward(caller) if self._index(each) is not None]
            for frame in reversed(around):
                self._enter(frame)
                frame.f_trace = self._on_line
            sys.settrace(self._on_call)
        except Exception as error:  # noqa: BLE001 - it would be raised in the user's code
            self._give_up(f"{type(error).__name__}: {error}")

    def stop(self) -> None:
        """Close every range and take back the trace function, from whatever thread."""
        self._marking = False
        if sys.gettrace() is self._on_call:
            sys.settrace(None)
        for frame in outward(sys._getframe(1)):
            if frame.f_trace is self._on_line:
                frame.f_trace = None
        while self._open:
            self._close()

    # -- called by the interpreter --------------------------------------------------------------

    def _called(self, frame: FrameType, _event: str, _arg: Any) -> TraceFunction | None:
        try:
            if self._marking and self._index(frame) is not None:
                return self._on_line
            if not self._marking and sys.gettrace() is self._on_call:
                sys.settrace(None)
        except Exception as error:  # noqa: BLE001 - it would be raised in the user's code
            self._give_up(f"{type(error).__name__}: {error}")
        return None

    def _ran(self, frame: FrameType, event: str, _arg: Any) -> TraceFunction | None:
        try:
            if not self._marking:
                frame.f_trace = None
            elif event == "line":
                self._enter(frame)
            elif event == "return":
                self._leave(frame)
        except Exception as error:  # noqa: BLE001 - it would be raised in the user's code
            self._give_up(f"{type(error).__name__}: {error}")
        return None  # `f_trace` stays as it is

    # -- ranges ---------------------------------------------------------------------------------

    def _enter(self, frame: FrameType) -> None:
        """A line begins in ``frame``."""
        self._events += 1
        if self._events > MAX_EVENTS:
            self._give_up(f"the step runs more than {MAX_EVENTS:,} lines")
            return
        line = frame.f_lineno
        self._settle(frame)
        if line is None:  # instructions that the compiler made up have none
            return
        key = frame.f_code, line
        self._runs[key] = runs = self._runs.get(key, 0) + 1
        hot = runs > HOT  # too often for a range each time
        inside = bool(self._open) and self._open[-1][0] is frame
        if inside:
            before = self._open[-1][1]
            if before == line or (hot and self._runs[frame.f_code, before] > HOT):
                return
            self._close()
        elif hot:
            return
        self.lines += 1
        if self.lines > MAX_LINES:
            self._give_up(f"the step has more than {MAX_LINES:,} ranges of lines")
            return
        name = f"traceview line {self._index(frame)}:{line}"
        self._open.append((frame, line, self._begin(name)))

    def _leave(self, frame: FrameType) -> None:
        """``frame`` returns, raises or yields; it keeps nothing of ours, as it may never go on."""
        frame.f_trace = None
        self._settle(frame)
        if self._open and self._open[-1][0] is frame:
            self._close()

    def _settle(self, frame: FrameType) -> None:
        """Close what is open in frames that do not stand around ``frame``.

        All of them have returned; only a switch of stacks (greenlets) is not announced.
        """
        while self._open:
            top, each = self._open[-1][0], frame
            while each is not top and each.f_back is not None:
                each = each.f_back
            if each is top:
                return
            self._close()

    def _close(self) -> None:
        self._open.pop()[2].__exit__(None, None, None)

    def _give_up(self, why: str) -> None:
        self.why_ended = self.why_ended or why
        try:
            self.stop()
        except Exception:  # noqa: BLE001 - it would be raised in the user's code
            self._open.clear()

    def _index(self, frame: FrameType) -> int | None:
        """Place of the frame's file in ``files``; None if it is not the user's source."""
        file = frame.f_code.co_filename
        try:
            return self._indices[file]
        except KeyError:
            index = None
        if self._frames.is_user(file) and not file.startswith(("<", *self._generated)):
            index = len(self.files)
            self.files.append(file)
        self._indices[file] = index
        return index


def generated_code() -> tuple[str, ...]:
    """Folders whose Python files Inductor and Triton have written."""
    named = (os.environ.get(name) for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"))
    usual = os.path.join(tempfile.gettempdir(), "torchinductor_")  # noqa: PTH118 - as co_filename is
    return (*(os.path.join(name, "") for name in named if name), usual)  # noqa: PTH118


class KernelMarks:
    """Puts ranges around generated C++ kernels between `start` and `stop`.

    ``begin`` opens a range of that name and gives what closes it by ``__exit__``.
    """

    def __init__(self, begin: Callable[[str], Any]) -> None:
        self._begin = begin
        self._unmarked: list[tuple[dict[str, Any], str, Any]] = []

    def start(self) -> None:
        cache = getattr(sys.modules.get("torch._inductor.codecache"), "PyCodeCache", None)
        for names in {id(each): vars(each) for each in getattr(cache, "modules", ())}.values():
            for name, kernel in list(names.items()):
                if name.startswith(_KERNELS) and callable(kernel):
                    self._unmarked.append((names, name, kernel))
                    names[name] = self._marked(name, kernel)

    def stop(self) -> None:
        """Take the ranges away again."""
        while self._unmarked:
            names, name, kernel = self._unmarked.pop()
            names[name] = kernel

    def _marked(self, name: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
        begin = self._begin

        def call(*args: Any) -> Any:
            mark = begin(name)
            try:
                return kernel(*args)
            finally:
                mark.__exit__(None, None, None)

        hide_from_dynamo(call)
        return call


class Collections:
    """Ranges ``traceview gc G`` (generation) between `start` and `stop`, where it is collected."""

    def __init__(self, begin: Callable[[str], Any]) -> None:
        self._begin = begin
        self._range: Any = None
        self._on_collection = self._heard

    def start(self) -> None:
        gc.callbacks.append(self._on_collection)

    def stop(self) -> None:
        if self._on_collection in gc.callbacks:
            gc.callbacks.remove(self._on_collection)
        self._end()

    def _heard(self, phase: str, info: dict[str, int]) -> None:
        """One collection runs at a time, whatever the thread (gc.callbacks)."""
        self._end()
        if phase == "start":
            self._range = self._begin(f"traceview gc {info['generation']}")

    def _end(self) -> None:
        range_, self._range = self._range, None
        if range_ is not None:
            range_.__exit__(None, None, None)
