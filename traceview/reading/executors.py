"""Where the map runs: in this process, in others of this machine, or on a Dask cluster.

An executor gives results in the order in which they are ready. A task whose worker died gives the
error in place of a result, and costs no other task its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Protocol, TypeVar

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
            yield item, function(item)


class Processes:
    """Processes of this machine, at most ``workers`` at a time; a single item is done here.

    The standard library's pool breaks as a whole when one worker dies. What had not been finished
    then goes to a new pool; an item that was under way twice at such a moment is then tried alone,
    and given up where its worker dies again.
    """

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or _cpus()

    def map(
        self, function: Callable[[T], R], items: Iterable[T]
    ) -> Iterator[tuple[T, R | Exception]]:
        waiting = list(items)
        if len(waiting) == 1:
            yield waiting[0], function(waiting[0])
            return
        suspects: list[T] = []
        while waiting:
            broken: list[T] = []
            yield from self._pool(function, waiting, self.workers, broken)
            suspects += broken
        for item in suspects:
            broken = []
            yield from self._pool(function, [item], 1, broken)
            if broken:
                yield item, WorkerDied("the process that read it was killed, or ran out of memory")

    def _pool(
        self, function: Callable[[T], R], waiting: list[T], workers: int, broken: list[T]
    ) -> Iterator[tuple[T, R | Exception]]:
        """Work on ``waiting`` until it is empty or the pool breaks; ``broken``: what ran then."""
        running: dict[Future[R], T] = {}
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            while waiting or running:
                try:
                    while waiting and len(running) < workers:
                        with _share_of_threads(workers):  # a worker starts when it is needed
                            future = pool.submit(function, waiting[0])
                        running[future] = waiting.pop(0)
                except BrokenProcessPool:  # what runs will tell it too
                    if not running:
                        return
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    error = future.exception()
                    item = running.pop(future)
                    if isinstance(error, BrokenProcessPool):
                        broken.append(item)
                    elif error is not None:
                        raise error
                    else:
                        yield item, future.result()
                if broken:
                    broken += running.values()
                    return


class Dask:
    """The workers of a running Dask cluster; they need traceview and the same file system."""

    def __init__(self, address: str) -> None:
        from traceview.errors import UsageError

        try:
            from distributed import Client
        except ImportError as error:
            fact = "--scheduler needs the package distributed, which is not installed."
            remedy = "Install it with: pip install 'traceview[dask]'."
            raise UsageError(fact, remedy, slug="no-dask") from error
        try:
            self._client = Client(address, timeout=10)
        except (OSError, ValueError, TimeoutError) as error:
            fact = f"No Dask scheduler answers at {address} ({error})."
            remedy = "Start one with `dask scheduler`, and name its address: tcp://HOST:8786."
            raise UsageError(fact, remedy, slug="no-scheduler") from error

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
        from distributed import KilledWorker, as_completed

        submitted = [(self._client.submit(function, item, pure=False), item) for item in items]
        item_of = {future.key: item for future, item in submitted}
        for future in as_completed([future for future, _ in submitted]):
            error = future.exception()
            if isinstance(error, KilledWorker):
                yield item_of[future.key], WorkerDied("every worker that read it died")
            elif error is not None:
                raise error
            else:
                yield item_of[future.key], future.result()
            future.release()


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
