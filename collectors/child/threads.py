"""Looks at the script's other Python threads between timed blocks: who holds Python's lock?

A look gives the lock away for a moment and takes the time until it is back: microseconds, or, where
another thread runs Python, its switch interval (``sys.setswitchinterval``, 5 ms). Where each thread
is, and how much of a processor it has meanwhile, shows which one it is.

A thread that rests at that moment may work in the midst of each step, as a pool does that makes the
next batch. So what each has of a processor while a block is timed is read at the block's edges, and
where one has much, it is watched between blocks: where is it, a thousand times a second?

And listens where a DataLoader's worker processes start: how often, at which line, and how long the
script waits. Each iterator over a loader forks its workers and waits for their first batch, unless
the loader keeps them (``persistent_workers``).
"""

from __future__ import annotations

import functools
import sys
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable
from typing import Any

from .clock import thread_time
from .frames import Frames, Sources, outward
from .importhook import after_import
from .recorder import Recorder
from .regions import hide_from_dynamo
from .state import Control

MOST_LOOKS = 20
MOST_THREADS = 16
#: Part of a block for which other threads together must run to be watched, how often they are
#: looked at then, and how long.
BUSY_SHARE = 0.1
WATCH_EVERY_S = 1e-3
MOST_WATCHES = 50
#: More starts of workers say no more about how often it happens.
MOST_STARTS = 500


class Threads:
    """Writes one ``thread_look`` event per thread and look, and one where there is no thread."""

    def __init__(self, recorder: Recorder, frames: Frames, sources: Sources) -> None:
        self._recorder = recorder
        self._frames = frames
        self._sources = sources
        self._looks = 0
        self._alone = False
        self._had: dict[int | None, float | None] = {}  # of a processor, by a thread's number
        self._began_ns = 0
        self._busy = False
        self._watch: _Watch | None = None

    def stop_watching(self) -> None:
        """What comes next is timed, or profiled: one ``thread_seen`` event for each function."""
        if (watch := self._watch) is None:
            return
        self._watch = None
        watch.end()
        for (name, (file, line, function)), count in watch.seen.items():
            self._sources.keep(file)
            keys = {"file": file, "line": line, "function": function, "seen": count}
            self._recorder.write("thread_seen", name=name, **keys)

    def block_opens(self) -> None:
        """Timed steps are about to begin."""
        self.stop_watching()
        self._had = {each.native_id: _cpu_ms(each.native_id) for each in _others()[:MOST_THREADS]}
        self._began_ns = time.perf_counter_ns()

    def block_closed(self, stance: str) -> None:
        """They have ended: one ``thread_block`` event for each thread that ran meanwhile."""
        if not self._had:
            return
        block_ms, ran_ms = (time.perf_counter_ns() - self._began_ns) / 1e6, 0.0
        for each in _others():
            had = self._had.get(each.native_id)
            now = None if had is None else _cpu_ms(each.native_id)
            if had is not None and now is not None and now > had:
                ran_ms += now - had
                keys = {"stance": stance, "name": each.name[:200], "ran_ms": now - had}
                self._recorder.write("thread_block", **keys)
        self._busy = ran_ms >= BUSY_SHARE * block_ms

    def look(self, step: int) -> None:
        """Outside of timed steps, in the thread that runs them."""
        if self._looks >= MOST_LOOKS:
            return
        others = _others()
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
        if self._busy and self._watch is None:
            self._watch = _Watch(self._frames)
            self._watch.start()

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


class _Watch(threading.Thread):
    """Counts where other threads are in the user's code, until it ends."""

    def __init__(self, frames: Frames) -> None:
        super().__init__(name="traceview", daemon=True)
        self._frames = frames
        self._others = {each.ident or 0: each for each in _others()[:MOST_THREADS]}
        self._over = threading.Event()
        self.seen: Counter[tuple[Any, ...]] = Counter()

    def run(self) -> None:
        for _ in range(MOST_WATCHES):
            if self._over.wait(WATCH_EVERY_S):
                return
            running = sys._current_frames()
            for ident, thread in self._others.items():
                frame = running.get(ident)
                if frame is None or not self._frames.is_user(frame.f_code.co_filename):
                    continue
                # Which line is by where Python's lock is let go, the function by its time.
                code = frame.f_code
                place = code.co_filename, code.co_firstlineno, code.co_name
                self.seen[thread.name[:200], place] += 1

    def end(self) -> None:
        self._over.set()
        self.join()


def _others() -> list[threading.Thread]:
    """The threads that Python knows, but the calling one and our own."""
    mine = threading.get_ident()
    return [
        each
        for each in threading.enumerate()
        if each.ident not in (mine, None) and not isinstance(each, _Watch)
    ]


def _cpu_ms(native_id: int | None) -> float | None:
    """What the thread has had of a processor so far; None where Linux does not tell."""
    try:
        with open(f"/proc/self/task/{native_id}/schedstat", encoding="ascii") as file:  # noqa: PTH123
            return int(file.read().split()[0]) / 1e6
    except (OSError, ValueError, IndexError):
        return None


class Loaders:
    """Writes a ``loader_start`` event for each iterator with workers, once it has a batch."""

    def __init__(
        self,
        control: Control,
        recorder: Recorder,
        frames: Frames,
        sources: Sources,
        step: Callable[[], int],
    ) -> None:
        self._control, self._recorder = control, recorder
        self._frames, self._sources, self._step = frames, sources, step
        self._starts = self._stop_ns = self._loaders = 0

    def watch(self) -> None:
        """Hear of every iterator that is made from here on."""
        after_import("torch.utils.data.dataloader", self._patch)

    def _patch(self, module: Any) -> None:
        made: Any = getattr(module, "_MultiProcessingDataLoaderIter", None)
        if not all(hasattr(made, name) for name in ("_shutdown_workers", "_next_data")):
            return
        plain, plain_stop = made.__init__, made._shutdown_workers

        @functools.wraps(plain)
        def __init__(self_: Any, *args: Any, **kwargs: Any) -> None:
            began = time.perf_counter_ns()
            plain(self_, *args, **kwargs)
            if not self._control.off and self._starts < MOST_STARTS:
                self._starts += 1
                try:
                    ms = (time.perf_counter_ns() - began) / 1e6
                    self._started(self_, ms, args[0] if args else kwargs.get("loader"))
                except Exception as error:  # noqa: BLE001 - the script's loader must go on
                    self._recorder.note("the start of a loader's workers", error)

        @functools.wraps(plain_stop)
        def _shutdown_workers(self_: Any) -> None:  # also where it is collected, at the very end
            began = time.perf_counter_ns()
            plain_stop(self_)
            self._stop_ns += time.perf_counter_ns() - began

        hide_from_dynamo(__init__)
        hide_from_dynamo(_shutdown_workers)
        made.__init__, made._shutdown_workers = __init__, _shutdown_workers

    def _started(self, iterator: Any, start_ms: float, loader: Any) -> None:
        known = getattr(loader, "_traceview_loader", None)
        if known is None:
            loader._traceview_loader = known = self._loaders  # equal ones may be two
            self._loaders += 1
        site = self._frames.call_site(sys._getframe(2)) or {}
        self._sources.keep(site.get("file"))
        event = {
            "step": self._step(),
            "loader": known,
            "workers": getattr(iterator, "_num_workers", None),
            "persistent": getattr(iterator, "_persistent_workers", None),
            "start_ms": start_ms,
            "stop_ms": self._stop_ns / 1e6,  # of those before it
            **{key: site.get(key) for key in ("file", "line", "function")},
        }
        self._stop_ns = 0
        there = weakref.ref(iterator)  # a cycle would keep the workers until it is collected

        def first() -> Any:
            self_ = there()
            del self_._next_data  # type: ignore[union-attr]
            began = time.perf_counter_ns()
            try:
                return self_._next_data()  # type: ignore[union-attr]
            finally:
                first_ms = (time.perf_counter_ns() - began) / 1e6
                self._recorder.write("loader_start", **event, first_ms=first_ms)

        hide_from_dynamo(first)
        iterator._next_data = first
