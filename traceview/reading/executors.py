"""Where the map runs: in this process, in others of this machine, or on a Dask cluster.

An executor gives results in the order in which they are ready. A task that raises, or whose worker
died, gives the error in place of a result, and costs no other task its own.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context, resource_tracker
from typing import Any, Protocol, TypeVar

from traceview import limits, memory
from traceview.errors import TraceviewError, UsageError, is_defect

#: polars' handler of Ctrl-C lets a waiting thread sleep on: it has to wake up by itself.
AWAKE_S = 0.2
#: Seconds until a cluster that has no scheduler or no workers is given up, and between two looks.
ANSWER_WITHIN_S, LOOK_S = 10.0, 5.0
T = TypeVar("T")
R = TypeVar("R")


class Executor(Protocol):
    """Maps a function over items."""

    def map(
        self, function: Callable[[T], R], items: Iterable[T]
    ) -> Iterator[tuple[T, R | Exception]]:
        """(item, result or what went wrong) for every item."""
        ...


class WorkerDied(Exception):
    """The process that worked on an item is gone: killed, or out of memory."""


class Serial:
    """One item after the other, here."""

    def map(
        self, function: Callable[[T], R], items: Iterable[T]
    ) -> Iterator[tuple[T, R | Exception]]:
        for item in items:
            yield item, _tried(function, item)


def _tried(function: Callable[[T], R], item: T) -> R | Exception:
    """The result, or the defect; what the user has to solve is raised."""
    try:
        return function(item)
    except (TraceviewError, OSError):
        raise
    except BaseException as error:
        if not is_defect(error):
            raise
        return error if isinstance(error, Exception) else WorkerDied(str(error))


class Processes:
    """Processes of this machine, at most ``workers`` at a time; a single item is done here.

    The standard library's pool breaks as a whole when one worker dies. What had not been finished
    then goes to a new pool; an item that was under way twice at such a moment is then tried alone,
    and given up where its worker dies again.
    """

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or memory.readers_at_once(_cpus())

    def map(
        self, function: Callable[[T], R], items: Iterable[T]
    ) -> Iterator[tuple[T, R | Exception]]:
        waiting = list(items)
        if len(waiting) == 1:
            yield waiting[0], _tried(function, waiting[0])
            return
        suspects: list[T] = []
        workers = self.workers
        while waiting:
            broken: list[T] = []
            killed = memory.readers_killed()
            yield from self._pool(function, waiting, workers, broken)
            if broken and memory.readers_killed() > killed:
                if workers == 1:
                    yield broken.pop(), MemoryError()
                waiting = broken + waiting  # again, with more memory for each
                workers = max(1, workers // 2)
            else:
                suspects += broken
        for item in suspects:
            broken = []
            yield from self._pool(function, [item], 1, broken)
            if broken:
                yield item, WorkerDied("the process that read it was killed, or took too much")

    def _pool(
        self, function: Callable[[T], R], waiting: list[T], workers: int, broken: list[T]
    ) -> Iterator[tuple[T, R | Exception]]:
        """Work on ``waiting`` until it is empty or the pool breaks; ``broken``: what ran then."""
        running: dict[Future[R | Exception], T] = {}
        spawn = get_context("spawn")
        begin = partial(_begun, limits.now.memory)
        with ProcessPoolExecutor(workers, spawn, begin) as pool, _killed_unless_done():
            while waiting or running:
                try:
                    while waiting and len(running) < workers and (not running or memory.has_room()):
                        # a worker starts when it is needed
                        with _share_of_threads(workers), _no_interrupt():
                            future = pool.submit(_tried, function, waiting[0])
                        running[future] = waiting.pop(0)
                except BrokenProcessPool:  # what runs will tell it too
                    if not running:
                        return
                done, _ = wait(running, AWAKE_S, FIRST_COMPLETED)
                for future in done:
                    error = future.exception()
                    item = running.pop(future)
                    if isinstance(error, BrokenProcessPool):
                        broken.append(item)
                    else:
                        yield item, future.result()
                if broken:
                    broken += running.values()
                    return


class Dask:
    """The workers of a running Dask cluster; they need traceview and the same file system."""

    def __init__(self, address: str) -> None:
        try:
            from distributed import Client
        except ImportError as error:
            fact = "--scheduler needs the package distributed, which is not installed."
            remedy = "Install it with: pip install 'traceview[dask]'."
            raise UsageError(fact, remedy, slug="no-dask") from error
        self._address = address
        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # we say it ourselves
        try:
            self._client = Client(address, timeout=ANSWER_WITHIN_S)
        except (OSError, ValueError, TimeoutError) as error:
            fact = f"No Dask scheduler answers at {address} ({error})."
            remedy = "Start one with `dask scheduler`, and name its address: tcp://HOST:8786."
            raise UsageError(fact, remedy, slug="no-scheduler") from error
        try:
            self._client.wait_for_workers(1, timeout=ANSWER_WITHIN_S)
        except TimeoutError as error:
            self._client.close()
            fact = f"The Dask scheduler at {address} has no workers."
            remedy = f"Start some with `dask worker {address}`."
            raise UsageError(fact, remedy, slug="no-workers") from error

    def map(
        self, function: Callable[[T], R], items: Iterable[T]
    ) -> Iterator[tuple[T, R | Exception]]:
        """Dask blames a worker's death on all items that it had: each of them has a turn alone."""
        suspects: list[T] = []
        for item, result in self._submitted(function, items):
            if isinstance(result, WorkerDied):
                suspects.append(item)
            else:
                yield item, result
        for item in suspects:
            yield from self._submitted(function, [item])

    def _submitted(
        self, function: Callable[[T], R], items: Iterable[T]
    ) -> Iterator[tuple[T, R | Exception]]:
        from distributed import KilledWorker

        submit = partial(self._client.submit, _tried, function, pure=False)
        submitted = [(submit(item), item) for item in items]
        item_of = {future.key: item for future, item in submitted}
        for future in self._done({future for future, _ in submitted}):
            error = future.exception()
            if isinstance(error, KilledWorker):
                yield item_of[future.key], WorkerDied("every worker that read it died")
            else:
                yield item_of[future.key], future.result()
            future.release()

    def _done(self, left: set[Any]) -> Iterator[Any]:
        """Futures as they are ready; UsageError if the scheduler or all its workers are gone."""
        from distributed import as_completed

        seen = time.monotonic()
        while left:
            if self._client.status != "running":
                raise self._gone("has gone away")
            try:
                for future in as_completed(left.copy(), timeout=LOOK_S):
                    if future.cancelled():
                        raise self._gone("has gone away")
                    left.discard(future)
                    yield future
            except TimeoutError:
                if self._client.scheduler_info().get("workers"):
                    seen = time.monotonic()
                elif time.monotonic() - seen > ANSWER_WITHIN_S:
                    raise self._gone("has lost all its workers") from None

    def _gone(self, what: str) -> UsageError:
        fact = f"The Dask scheduler at {self._address} {what} while logs were read."
        remedy = "Start it again, and rerun the command with --resume and the same -o DIR."
        return UsageError(fact, remedy, slug="scheduler-gone")


def _begun(ceiling: int) -> None:
    """In a worker: whatever ends the process that started it ends this one, too."""
    memory.confine(ceiling)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _killed_unless_done() -> Iterator[None]:
    """Kill the processes that start in here where it ends early: no result is waited for."""
    before, done = set(multiprocessing.active_children()), False
    try:
        yield
        done = True
    finally:
        for process in set(multiprocessing.active_children()) - before if not done else ():
            process.kill()


@contextmanager
def _no_interrupt() -> Iterator[None]:
    """Processes that start in here never see a Ctrl-C, not even while they import what they need.

    The terminal sends it to every process; this one gets its own afterwards, and what would end it,
    so that none of them is left half started. The mask, which processes inherit, is one thread's:
    another thread may take the signal for this one.
    """
    resource_tracker.ensure_running()  # its start would let the signal through
    seen: list[int] = []
    former = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                former[number] = signal.signal(number, lambda number, _frame: seen.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in former.items():
            signal.signal(number, handler)
    if seen:
        signal.raise_signal(seen[0])


@contextmanager
def _share_of_threads(workers: int) -> Iterator[None]:
    """Processes that start in here have their share of the processors' threads of polars each."""
    name = "POLARS_MAX_THREADS"
    if name in os.environ:
        yield
        return
    os.environ[name] = str(max(1, _cpus() // workers))
    try:
        yield
    finally:
        del os.environ[name]


def _cpus() -> int:
    return len(os.sched_getaffinity(0))
