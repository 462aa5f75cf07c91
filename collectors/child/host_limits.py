"""Ceilings of a CPU, by the host clock and with the script's own number of threads."""

from __future__ import annotations

import mmap
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from . import ceilings
from .ceilings import Ceiling, NotMeasured, Task, Way, best_rate, byte_words, share
from .memory import page_faults

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_LEAST_COPY = 128 << 20  # where the cache is small or unknown
_MATMUL_SIZES = (256, 512, 1024, 2048, 4096)
_BATCH = 20  # calls per timing where a call is short
_FRESH_BYTES = 16 << 20
_AGAIN = 3  # fills of memory once touched: what other work disturbs takes longer, never less


def host_tasks(torch: Any) -> Iterator[Task]:
    """Page faults, copy beyond the caches and inside them, and matrix products."""
    caches = cache_sizes()
    last = caches[max(caches)] if caches else None
    room = min(free_bytes() // 8, ceilings.LARGEST_BYTES)
    wanted = min(max(4 * (last or 0), _LEAST_COPY), ceilings.LARGEST_BYTES)
    size = min(wanted, room)
    if size < ceilings.LEAST_BYTES or size < 2 * (last or 0):
        raise NotMeasured(f"only {byte_words(room)} of memory may be used for it")
    yield Task("page fault", partial(_page_fault, torch))
    arena = torch.empty(size, dtype=torch.uint8, device="cpu").fill_(1)  # zeros may be no memory
    yield Task("copy", partial(_copy, torch, arena))
    yield Task("copy in the cache", partial(_cached_copy, torch, arena, caches))
    for name in ("float32", "bfloat16", "float16"):
        yield Task(f"matmul {name}", partial(_matmul, torch, arena, name))


def _copy(torch: Any, arena: Any, deadline: float) -> Ceiling:
    ways = ceilings.copies(torch, arena, arena.numel())
    return _bandwidth(torch, "copy", best_rate(ways, _timed, share(deadline, 0.25)))


def _cached_copy(torch: Any, arena: Any, caches: dict[int, int], deadline: float) -> Ceiling:
    """Best of a quarter of the last cache, and half of what the threads' own second caches hold."""
    if not caches:
        raise NotMeasured("the size of the caches is not known")
    last = caches[max(caches)]
    sizes = {last // 4, min(last // 4, caches.get(2, last) * torch.get_num_threads() // 2)}
    ways = [_many(way) for size in sizes for way in ceilings.copies(torch, arena, size)]
    return _bandwidth(torch, "l2_copy", best_rate(ways, _timed, share(deadline, 0.15)))


def _many(way: Way) -> Way:
    def act() -> None:
        for _ in range(_BATCH):
            way.act()

    return Way(act, way.amount * _BATCH, way.size, way.detail)


def _bandwidth(torch: Any, kind: str, found: tuple[Way, float, int]) -> Ceiling:
    way, rate, runs = found
    detail = f"{way.detail}, {_threads(torch)}"
    return Ceiling(kind, rate / 1e9, "GB/s", runs, "host", size=way.size, detail=detail)


def _page_fault(torch: Any, deadline: float) -> Ceiling:
    """What the first touch of a page takes longer than a later one."""
    until = share(deadline, 0.1)
    seconds: list[float] = []
    while len(seconds) < ceilings.LEAST_RUNS or (
        len(seconds) < ceilings.MOST_RUNS and time.monotonic() < until
    ):
        seconds.append(_fault_seconds(torch))
    detail = f"first fill less the quickest of {_AGAIN} more, {_threads(torch)}"
    size = byte_words(_FRESH_BYTES)
    value = median(seconds) * 1e6
    if value <= 0:
        raise NotMeasured("other work disturbed it")
    return Ceiling("page_fault", value, "us", len(seconds), "host", size=size, detail=detail)


def _fault_seconds(torch: Any) -> float:
    """Seconds a fault, in memory that no allocator has had before, in small pages."""
    with mmap.mmap(-1, _FRESH_BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as fresh:
        with suppress(OSError):  # a kernel without huge pages
            fresh.madvise(mmap.MADV_NOHUGEPAGE)
        pages = torch.frombuffer(fresh, dtype=torch.uint8)
        before = page_faults()
        first = _timed(partial(pages.fill_, 1), 1)[0]
        faults = page_faults() - before
        second = min(_timed(partial(pages.fill_, 1), _AGAIN))
        del pages  # the mapping cannot be closed while a tensor lies in it
    if faults < _FRESH_BYTES // mmap.PAGESIZE // 2:
        raise NotMeasured("page faults are not counted here")
    return (first - second) / faults


def _matmul(torch: Any, arena: Any, name: str, deadline: float) -> Ceiling:
    seed = torch.Generator(device="cpu").manual_seed(0)
    ways = ceilings.matmuls(torch, arena, getattr(torch, name), _MATMUL_SIZES, seed)
    way, rate, runs = best_rate(ways, _timed, share(deadline, 0.3))
    precision = f"precision {torch.get_float32_matmul_precision()}, " if name == "float32" else ""
    detail = f"{precision}{_threads(torch)}, {way.detail}"
    return Ceiling("matmul", rate / 1e12, "TFLOP/s", runs, "host", name, way.size, detail)


def _threads(torch: Any) -> str:
    count = torch.get_num_threads()
    return f"{count} thread{'s' * (count > 1)}"


def _timed(act: Callable[[], object], runs: int) -> list[float]:
    seconds = []
    for _ in range(runs):
        began = time.perf_counter()
        act()
        seconds.append(time.perf_counter() - began)
    return seconds


def cache_sizes(folder: Path = _CACHES) -> dict[int, int]:
    """Level → bytes of the first processor's data caches; empty where sysfs does not tell."""
    found = {}
    for each in folder.glob("index*"):
        try:
            kind, level, size = (
                (each / name).read_text(encoding="ascii").strip()
                for name in ("type", "level", "size")
            )
            if kind in ("Data", "Unified"):
                found[int(level)] = int(size.removesuffix("K")) * 1024
        except (OSError, ValueError):
            continue
    return found


def free_bytes(meminfo: Path = Path("/proc/meminfo"), group: Path = Path("/sys/fs/cgroup")) -> int:
    """Memory that the machine, and the control group, still have to give; 0 if not known."""
    available = 0
    try:
        for line in meminfo.read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("MemAvailable:"):
                available = int(line.split()[1]) * 1024
        limit = (group / "memory.max").read_text(encoding="ascii").strip()
        if limit != "max":
            used = int((group / "memory.current").read_text(encoding="ascii"))
            available = min(available, max(0, int(limit) - used))
    except (OSError, ValueError, IndexError):
        return available
    return available
