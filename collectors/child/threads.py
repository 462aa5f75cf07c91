"""Looks at the script's other Python threads between timed blocks: who holds Python's lock?

A look gives the lock away for a moment and takes the time until it is back: microseconds, or, where
another thread runs Python, its switch interval (``sys.setswitchinterval``, 5 ms). Where each thread
is, and how much of a processor it has meanwhile, shows which one it is.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

from .clock import thread_time
from .frames import Frames, Sources, outward
from .recorder import Recorder

MOST_LOOKS = 20
MOST_THREADS = 16


class Threads:
    """Writes one ``thread_look`` event per thread and look, and one where there is no thread."""

    def __init__(self, recorder: Recorder, frames: Frames, sources: Sources) -> None:
        self._recorder = recorder
        self._frames = frames
        self._sources = sources
        self._looks = 0
        self._alone = False

    def look(self, step: int) -> None:
        """Outside of timed steps, in the thread that runs them."""
        if self._looks >= MOST_LOOKS:
            return
        mine = threading.get_ident()
        others = [each for each in threading.enumerate() if each.ident not in (mine, None)]
        if not others:
            if not self._alone:
                self._recorder.write("thread_look", look=self._looks, step=step, name=None)
            self._alone = True
            return
        running = sys._current_frames()
        seen = [self._seen(each, running.get(each.ident or 0)) for each in others[:MOST_THREADS]]
        del running
        had = [_cpu_ms(each["native_id"]) for each in seen]
        thread, began = thread_time(), time.perf_counter_ns()
        time.sleep(0)  # gives the lock away, and takes it again
        waited = (time.perf_counter_ns() - began) / 1e6 - (
            thread_time().since(thread).queued or 0.0
        )
        for each, before in zip(seen, had, strict=True):
            now = _cpu_ms(each["native_id"])
            self._recorder.write(
                "thread_look",
                look=self._looks,
                step=step,
                waited_ms=max(0.0, waited),
                interval_ms=sys.getswitchinterval() * 1e3,
                ran_ms=None if now is None or before is None else now - before,
                **each,
            )
        self._looks += 1

    def _seen(self, thread: threading.Thread, frame: Any) -> dict[str, Any]:
        users = (each for each in outward(frame) if self._frames.is_user(each.f_code.co_filename))
        user = next(users, None)
        if user is not None:
            self._sources.keep(user.f_code.co_filename)
        return {
            "name": thread.name[:200],
            "native_id": thread.native_id,
            "file": user and user.f_code.co_filename,
            "line": user and user.f_lineno,
            "function": user and user.f_code.co_name,
            "inside": None if user is frame or frame is None else frame.f_code.co_name,
        }


def _cpu_ms(native_id: int | None) -> float | None:
    """What the thread has had of a processor so far; None where Linux does not tell."""
    try:
        with open(f"/proc/self/task/{native_id}/schedstat", encoding="ascii") as file:  # noqa: PTH123
            return int(file.read().split()[0]) / 1e6
    except (OSError, ValueError, IndexError):
        return None
