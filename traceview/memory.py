"""The memory of a post-mortem: of this process and all that it started, together below a ceiling.

What counts is anonymous memory that is in use, as the kernel counts it: files that are mapped can
be given back, and address space that is only reserved costs nothing. A thread looks some times a
second. Near the ceiling it kills the largest reader process, whose file is then read with fewer
others next to it. Without readers the main thread gets a MemoryError, which costs the file that it
reads; one that goes on all the same ends the command. Readers have a limit of their own, too, by
the kernel (RLIMIT_DATA), as they may grow between two looks.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from traceview import limits
from traceview.errors import DEBUG, TraceviewError

#: What a reader process takes, of small logs.
READER_BYTES = 150 << 20
_NEAR, _FULL, _ROOM = 0.9, 0.97, 0.6  # of the ceiling
#: Between two looks, far from the ceiling and not; a library may take 3 GB in a second.
_LOOK_S, _NEXT_LOOK_S = 0.05, 0.01
_PATIENCE_S = 3.0
#: The setting of polars' allocator, which keeps freed memory otherwise, 20 to 80 MB per process.
_ALLOCATOR, _FREED_AT_ONCE = "_RJEM_MALLOC_CONF", "narenas:1,dirty_decay_ms:100,muzzy_decay_ms:0"
_PAGE = resource.getpagesize()

#: The watch of this process, while there is one.
_watch: Watch | None = None


def freed_at_once() -> None:
    """Freed memory is given back, here if polars is not imported yet, and in all that is started.

    The last options count. polars leaves its own to what is started where it was imported.
    """
    given = os.environ.get(_ALLOCATOR)
    os.environ[_ALLOCATOR] = f"{given},{_FREED_AT_ONCE}" if given else _FREED_AT_ONCE


def held(pid: int | None = None) -> int:
    """Bytes in use by a process (default: this one) and those that it started."""
    pid, total = pid or os.getpid(), 0
    with suppress(OSError, ValueError):  # it may have ended
        _, resident, shared, *_ = Path(f"/proc/{pid}/statm").read_text().split()
        total = (int(resident) - int(shared)) * _PAGE
        # started by the main thread, as all are here
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        total += sum(held(int(child)) for child in children)
    return total


def confine(ceiling: int) -> None:
    """In a reader process: the kernel's limit, and silence, since allocators print when they end.

    All readers together are watched from the process that started them.
    """
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    if most == resource.RLIM_INFINITY or most > ceiling:
        resource.setrlimit(resource.RLIMIT_DATA, (ceiling, most))
    if DEBUG not in os.environ:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        os.close(nowhere)


def readers_at_once(wanted: int) -> int:
    """How many readers there is memory for, at most ``wanted``."""
    return max(1, min(wanted, int(limits.now.memory * _NEAR) // READER_BYTES))


def has_room() -> bool:
    """Whether one more reader may begin next to those that run."""
    return _watch is None or _watch.held < limits.now.memory * _ROOM


def readers_killed() -> int:
    """How many readers were killed for their memory so far."""
    return 0 if _watch is None else _watch.killed


@contextmanager
def kept_below(ceiling: int, scratch: Path) -> Iterator[None]:
    """Watch the memory in here; ``scratch`` is removed if the command has to be ended."""
    global _watch
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    former = signal.signal(signal.SIGUSR2, _out_of_memory)
    _watch = Watch(ceiling, scratch)
    _watch.start()
    try:
        yield
    except MemoryError:
        raise _needed(ceiling) from None
    finally:
        _watch.done.set()
        _watch.join()
        _watch = None
        signal.signal(signal.SIGUSR2, former)


def _needed(ceiling: int) -> TraceviewError:
    fact = f"This takes more than the {ceiling / 1e9:.2g} GB of memory that a post-mortem may have."
    remedy = "Raise that with --limit memory=8G, or read fewer or smaller logs."
    return TraceviewError(fact, remedy, slug="out-of-memory")


def _out_of_memory(_number: int, _frame: object) -> None:
    raise MemoryError


class Watch(threading.Thread):
    """Looks at the memory until ``done``; what was ``held`` last, and readers ``killed``."""

    def __init__(self, ceiling: int, scratch: Path) -> None:
        super().__init__(daemon=True)
        self._ceiling, self._scratch = ceiling, scratch
        self.held = self.killed = 0
        self.done = threading.Event()

    def run(self) -> None:
        told = 0.0
        while not self.done.wait(_LOOK_S if self.held < self._ceiling * _ROOM else _NEXT_LOOK_S):
            self.held = held()
            if self.held < self._ceiling * _NEAR:
                told = 0.0
                continue
            now = time.monotonic()
            readers = [child.pid for child in multiprocessing.active_children() if child.pid]
            if readers:
                self.killed += 1
                os.kill(max(readers, key=held), signal.SIGKILL)
                time.sleep(_LOOK_S)
            elif not told:
                told = now
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR2)
            elif self.held > self._ceiling * _FULL or now - told > _PATIENCE_S:
                self._end()

    def _end(self) -> None:
        """The main thread is in a library that hears nothing, or can't do with less."""
        error = _needed(self._ceiling)
        with suppress(OSError):
            sys.stderr.write(f"traceview: {error.fact}\n  {error.remedy}\n")
            sys.stderr.flush()
        for child in multiprocessing.active_children():
            child.kill()
        shutil.rmtree(self._scratch, ignore_errors=True)
        os._exit(error.exit_code)
