"""What the device can do, measured when the script has ended: one ``ceiling`` event a figure.

Every figure is a lower bound of what the device reaches: bytes that were moved, or operations that
were done, over the time that it took; the best of a few ways to do the same work.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from .recorder import Recorder

BUDGET_S = 2.0
LARGEST_BYTES = 1 << 30
LEAST_BYTES = 64 << 20
LEAST_RUNS = 3
MOST_RUNS = 30
_MIB = 1 << 20

Timed = Callable[[Callable[[], object], int], list[float]]


@dataclass(frozen=True)
class Ceiling:
    """One figure; the fields are keys of the event (docs/run-folder.md)."""

    kind: str
    value: float
    unit: str
    runs: int
    clock: str
    dtype: str | None = None
    size: str | None = None
    detail: str | None = None


@dataclass(frozen=True)
class Way:
    """One way to do some work: ``amount`` of it (bytes or operations) at every ``act``."""

    act: Callable[[], object]
    amount: float
    size: str
    detail: str | None = None


@dataclass(frozen=True)
class Task:
    """What is to be measured: its name for a note, and what measures it by the deadline."""

    what: str
    measure: Callable[[float], Ceiling]


class NotMeasured(Exception):
    """Why a figure was left out."""


def write_ceilings(torch: Any, recorder: Recorder, *, device: bool) -> None:
    """Measure for about 2 s. What can't be measured is a note; KeyboardInterrupt passes through."""
    from .device_limits import device_tasks
    from .host_limits import host_tasks

    deadline = time.monotonic() + BUDGET_S
    name = f"cuda:{torch.cuda.current_device()}" if device else "cpu"
    kind = "cuda" if device else "cpu"
    with torch.no_grad(), torch.autocast(kind, enabled=False):
        try:
            tasks = device_tasks(torch) if device else host_tasks(torch)
            for task in tasks:
                _carry_out(task, recorder, name, deadline)
        except NotMeasured as why:
            recorder.note("ceilings of the device", str(why))


def _carry_out(task: Task, recorder: Recorder, device: str, deadline: float) -> None:
    what = f"ceiling of the device: {task.what}"
    if time.monotonic() >= deadline:
        recorder.note(what, f"{BUDGET_S:.0f} s were over")
        return
    try:
        found = task.measure(deadline)
    except NotMeasured as why:
        recorder.note(what, str(why))
    except Exception as error:  # noqa: BLE001 - the script's own ending must go on
        recorder.note(what, error)
    else:
        recorder.write("ceiling", device=device, **vars(found))


def best_rate(
    ways: Iterable[Way], timed: Timed, until: float, *, rest_s: float = 0.0
) -> tuple[Way, float, int]:
    """The way that does most a second, its median rate (amount per second) and its runs.

    ``timed(act, runs)`` gives seconds of each run. Ways that would not end by ``until`` are passed
    over, but for the first. The best one is measured at length after ``rest_s`` of doing nothing.
    """
    best: tuple[Way, list[float]] | None = None
    for way in ways:
        if best is not None and time.monotonic() + 10 * way.amount / _rate(*best) > until:
            continue
        timed(way.act, 1)  # warms up
        seconds = timed(way.act, LEAST_RUNS)
        if best is None or _rate(way, seconds) > _rate(*best):
            best = (way, seconds)
    if best is None:
        raise NotMeasured("there is no room for it")
    way, seconds = best
    time.sleep(rest_s)
    left = int((until - time.monotonic()) / statistics.median(seconds))
    if left > 0:
        seconds += timed(way.act, min(MOST_RUNS, left))
    return way, _rate(way, seconds), len(seconds)


def _rate(way: Way, seconds: list[float]) -> float:
    return way.amount / statistics.median(seconds)


def share(deadline: float, seconds: float) -> float:
    """Until when a measurement may last that has ``seconds`` to itself."""
    return min(deadline, time.monotonic() + seconds)


def matmuls(torch: Any, arena: Any, dtype: Any, sizes: Iterable[int], seed: Any) -> Iterator[Way]:
    """Square products in ``arena`` (bytes); ``sizes`` are multiples of 256.

    Of random data (a block of it, repeated): zeros would use less power, and run faster. The right
    factor as it is and transposed, since libraries have a kernel for each.
    """
    block = torch.empty(256 * 256, dtype=dtype, device=arena.device).normal_(generator=seed)
    for size in sizes:
        count = size * size * block.element_size()
        if 3 * count > arena.numel():
            continue
        parts = [arena[i * count : (i + 1) * count].view(dtype) for i in range(3)]
        for part in parts:
            part.view(-1, block.numel()).copy_(block)
        left, right, out = (part.view(size, size) for part in parts)
        for factor, layout in ((right, "row-major"), (right.t(), "transposed")):
            act = partial(torch.mm, left, factor, out=out)
            yield Way(act, 2.0 * size**3, f"{size}x{size}x{size}", f"right factor {layout}")


def copies(torch: Any, arena: Any, size: int) -> Iterator[Way]:
    """Copies of ``size`` bytes, half of them read and half written, within ``arena``."""
    half = size // 512 * 256
    source = arena[:half].view(torch.float32)
    target = arena[half : 2 * half].view(torch.float32)
    size_words = byte_words(2 * half)
    yield Way(partial(target.copy_, source), 2.0 * half, size_words, "copy_")
    yield Way(partial(torch.neg, source, out=target), 2.0 * half, size_words, "neg")


def byte_words(count: int) -> str:
    """``1.5 GiB``, ``12 MiB``, ``512 KiB``."""
    for unit, size in (("GiB", 1 << 30), ("MiB", _MIB)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count / 1024:.3g} KiB"
