"""What the device can do, measured when the script has ended: one ``ceiling`` event a figure.

Every figure is a lower bound of what the device reaches: bytes that were moved, or operations that
were done, over the time that it took; the best of a few ways to do the same work. A CUDA device is
timed by its own events (but for the launch, which is the host's time), a CPU by the host clock and
with the script's own number of threads.
"""

from __future__ import annotations

import mmap
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from .memory import MEMINFO, page_faults, proc_bytes
from .recorder import Recorder

BUDGET_S = 2.0
LARGEST_BYTES = 1 << 30
LEAST_BYTES = 64 << 20
LEAST_RUNS = 3
MOST_RUNS = 30

# of a CUDA device
_L2_PASSES_BYTES = 4e9  # that one kernel moves within the L2
_LINE = 128  # bytes of a cache line
_REST_S = 0.1  # after which a device may draw more power than its limit again, for some 50 ms
_TINY = 300  # launches in a row; the driver queues about a thousand
_SPIN_CYCLES = 20_000_000  # some 10 ms, in which the host gets ahead

# of a CPU
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_LEAST_COPY = 128 << 20  # where the cache is small or unknown
_BATCH = 20  # calls per timing where a call is short
_FRESH_BYTES = 16 << 20
_AGAIN = 3  # fills of memory once touched: what other work disturbs takes longer, never less

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


Found = tuple[Way, float, int]  # the best way, its rate (amount per second), its runs
Task = tuple[str, Callable[[float], Ceiling]]  # a name for a note; what measures it by the deadline


@dataclass(frozen=True)
class Gauge:
    """How a device is timed: ``timed(act, runs)`` gives seconds of each run, by this clock.

    ``threads`` of a CPU, in words; ``rest_s`` before a matrix product is measured at length.
    """

    timed: Timed
    clock: str
    threads: str | None = None
    rest_s: float = 0.0

    def bandwidth(self, kind: str, ways: Iterable[Way], seconds: float, deadline: float) -> Ceiling:
        """The best of ``ways`` to move bytes, within ``seconds``."""
        way, rate, runs = best_rate(ways, self.timed, _share(deadline, seconds))
        detail = ", ".join(filter(None, (way.detail, self.threads)))
        return Ceiling(kind, rate / 1e9, "GB/s", runs, self.clock, size=way.size, detail=detail)

    def matmul(
        self, dtype: str, precision: str, ways: Iterable[Way], seconds: float, deadline: float
    ) -> Ceiling:
        """The same of matrix products; ``precision``: the setting that float32 ones depend on."""
        until = _share(deadline, seconds)
        way, rate, runs = best_rate(ways, self.timed, until, rest_s=self.rest_s)
        settings = (precision if dtype == "float32" else None, self.threads, way.detail)
        detail = ", ".join(filter(None, settings))
        return Ceiling("matmul", rate / 1e12, "TFLOP/s", runs, self.clock, dtype, way.size, detail)


class NotMeasured(Exception):
    """Why a figure was left out."""


def write_ceilings(torch: Any, recorder: Recorder, *, device: bool) -> None:
    """Measure for about 2 s. What can't be measured is a note; KeyboardInterrupt passes through."""
    deadline = time.monotonic() + BUDGET_S
    measured = f"cuda:{torch.cuda.current_device()}" if device else "cpu"
    with torch.no_grad(), torch.autocast("cuda" if device else "cpu", enabled=False):
        try:
            for name, measure in device_tasks(torch) if device else host_tasks(torch):
                what = f"ceiling of the device: {name}"
                if time.monotonic() >= deadline:
                    recorder.note(what, f"the time limit of {BUDGET_S:.0f} s was reached")
                    continue
                try:
                    found = measure(deadline)
                except NotMeasured as why:
                    recorder.note(what, str(why))
                except Exception as error:  # noqa: BLE001 - the script's own ending must go on
                    recorder.note(what, error)
                else:
                    recorder.write("ceiling", device=measured, **vars(found))
        except NotMeasured as why:
            recorder.note("ceilings of the device", str(why))


def best_rate(ways: Iterable[Way], timed: Timed, until: float, *, rest_s: float = 0.0) -> Found:
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
        raise NotMeasured("not enough memory")
    way, seconds = best
    time.sleep(rest_s)
    left = int((until - time.monotonic()) / median(seconds))
    if left > 0:
        seconds += timed(way.act, min(MOST_RUNS, left))
    return way, _rate(way, seconds), len(seconds)


def _rate(way: Way, seconds: list[float]) -> float:
    return way.amount / median(seconds)


def _samples(take: Callable[[], float], until: float) -> list[float]:
    """What ``take`` gives until that time, at least LEAST_RUNS and at most MOST_RUNS times."""
    found: list[float] = []
    while len(found) < LEAST_RUNS or (len(found) < MOST_RUNS and time.monotonic() < until):
        found.append(take())
    return found


def _share(deadline: float, seconds: float) -> float:
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
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count / 1024:.3g} KiB"


# -- a CUDA device --------------------------------------------------------------------------------


def device_tasks(torch: Any) -> Iterator[Task]:
    """Launches, copy beyond the L2 and inside it, matrix products; on the current device."""
    room = min(torch.cuda.mem_get_info()[0] // 8, LARGEST_BYTES) // 4096 * 4096
    if room < LEAST_BYTES:
        raise NotMeasured(f"only {byte_words(room)} of device memory can be used for it")
    seed = torch.Generator(device="cuda").manual_seed(0)
    arena = torch.empty(room, dtype=torch.uint8, device="cuda").random_(generator=seed)
    flush = room // 8 // 4096 * 4096  # cleared before every run: as triton.testing.do_bench does
    gauge = Gauge(partial(seconds_of, torch, arena[-flush:]), "device", rest_s=_REST_S)
    arena = arena[:-flush]
    yield "launch", partial(_launch, torch)
    yield "kernel gap", partial(_kernel_gap, torch)
    ways = copies(torch, arena, arena.numel())
    yield "copy", partial(gauge.bandwidth, "copy", ways, 0.2)
    yield "copy in the L2", partial(_l2_copy, torch, arena, gauge)
    settings = torch.backends.cuda.matmul
    try:
        tf32 = bool(settings.allow_tf32)  # as the script has set it
    except RuntimeError:  # the script uses the new switch (2.9)
        tf32 = settings.fp32_precision == "tf32"
    for name in ("bfloat16", "float16", "float32"):
        ways = matmuls(torch, arena, getattr(torch, name), (4096, 8192), seed)
        precision = f"tf32 {'on' if tf32 else 'off'}"
        yield f"matmul {name}", partial(gauge.matmul, name, precision, ways, 0.45)


def seconds_of(torch: Any, flush: Any, act: Callable[[], object], runs: int) -> list[float]:
    """Seconds of each run between two events."""
    pairs = []
    for _ in range(runs):
        pair = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        flush.zero_()
        pair[0].record()
        act()
        pair[1].record()
        pairs.append(pair)
    torch.cuda.synchronize()
    return [start.elapsed_time(end) / 1e3 for start, end in pairs]


def _l2_copy(torch: Any, arena: Any, gauge: Gauge, deadline: float) -> Ceiling:
    """One kernel that copies the same few MiB many times over.

    A kernel for each time would end before the next one starts: what is timed would be launches.
    """
    l2 = getattr(torch.cuda.get_device_properties("cuda"), "L2_cache_size", 0)
    if not l2 or l2 > arena.numel():
        raise NotMeasured("the size of the L2 cache is unknown")
    ways = [_passes(torch, arena, l2 // part) for part in (4, 2)]
    return gauge.bandwidth("l2_copy", ways, 0.2, deadline)


def _passes(torch: Any, arena: Any, size: int) -> Way:
    """Rows that lie one cache line after each other: each pass is over almost the same bytes.

    16-byte elements, as the widest that a thread loads at once.
    """
    half = size // 2 // _LINE * _LINE
    row = half // 16
    rows = max(1, int(_L2_PASSES_BYTES / (2 * half)))
    tall = half + rows * _LINE
    shape, strides = (rows, row), (_LINE // 16, 1)
    source, target = (
        arena[start : start + tall].view(torch.complex128).as_strided(shape, strides)
        for start in (0, tall)
    )
    act = partial(target.copy_, source)
    return Way(act, 2.0 * half * rows, byte_words(2 * half), f"{rows} passes in one kernel")


def _launch(torch: Any, deadline: float) -> Ceiling:
    """Host time of a launch that does nothing, past torch's dispatcher."""

    def take() -> float:
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(_TINY):
            torch.cuda._sleep(0)
        return (time.perf_counter() - began) / _TINY

    seconds = _samples(take, _share(deadline, 0.05))
    torch.cuda.synchronize()
    return _tiny("launch", seconds[1:], "host")


def _kernel_gap(torch: Any, _deadline: float) -> Ceiling:
    """Start to start of kernels that do nothing, queued up behind one that lasts long enough."""
    seconds = []
    for _ in range(2 * LEAST_RUNS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(_SPIN_CYCLES)
        start.record()
        for _ in range(_TINY):
            torch.cuda._sleep(0)
        end.record()
        ahead = not start.query()
        torch.cuda.synchronize()
        if ahead:
            seconds.append(start.elapsed_time(end) / 1e3 / _TINY)
    if not seconds:
        raise NotMeasured("the host launches more slowly than the device runs")
    return _tiny("kernel_gap", seconds, "device")


def _tiny(kind: str, seconds: list[float], clock: str) -> Ceiling:
    value = median(seconds) * 1e6
    return Ceiling(kind, value, "us", len(seconds), clock, detail="empty kernel of one thread")


# -- a CPU ----------------------------------------------------------------------------------------


def host_tasks(torch: Any) -> Iterator[Task]:
    """Page faults, copy beyond the caches and inside them, and matrix products."""
    caches = cache_sizes()
    last = caches[max(caches)] if caches else 0
    room = min(free_bytes() // 8, LARGEST_BYTES)
    size = min(max(4 * last, _LEAST_COPY), room)
    if size < LEAST_BYTES or size < 2 * last:
        raise NotMeasured(f"only {byte_words(room)} of memory can be used for it")
    count = torch.get_num_threads()
    gauge = Gauge(_timed, "host", f"{count} thread{'s' * (count > 1)}")
    yield "page fault", partial(_page_fault, torch, gauge)
    arena = torch.empty(size, dtype=torch.uint8, device="cpu").fill_(1)  # zeros may be no memory
    ways = copies(torch, arena, arena.numel())
    yield "copy", partial(gauge.bandwidth, "copy", ways, 0.25)
    yield "copy in the cache", partial(_cached_copy, torch, arena, gauge, caches)
    precision = f"precision {torch.get_float32_matmul_precision()}"
    for name in ("float32", "bfloat16", "float16"):
        seed = torch.Generator(device="cpu").manual_seed(0)
        sizes = (256, 512, 1024, 2048, 4096)
        ways = matmuls(torch, arena, getattr(torch, name), sizes, seed)
        yield f"matmul {name}", partial(gauge.matmul, name, precision, ways, 0.3)


def _cached_copy(
    torch: Any, arena: Any, gauge: Gauge, caches: dict[int, int], deadline: float
) -> Ceiling:
    """Best of a quarter of the last cache, and half of what the threads' own second caches hold."""
    if not caches:
        raise NotMeasured("the sizes of the CPU's caches are unknown")

    def many(way: Way) -> Way:
        def act() -> None:
            for _ in range(_BATCH):
                way.act()

        return replace(way, act=act, amount=way.amount * _BATCH)

    last = caches[max(caches)]
    sizes = {last // 4, min(last // 4, caches.get(2, last) * torch.get_num_threads() // 2)}
    ways = [many(way) for size in sizes for way in copies(torch, arena, size)]
    return gauge.bandwidth("l2_copy", ways, 0.15, deadline)


def _page_fault(torch: Any, gauge: Gauge, deadline: float) -> Ceiling:
    """What the first touch of a page takes longer than a later one, and giving the page back.

    Steps that touch new pages again and again give as many back, which takes a quarter as long.
    """

    def take() -> float:
        """Seconds a fault, in memory that no allocator has had before, in small pages."""
        with mmap.mmap(-1, _FRESH_BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as fresh:
            with suppress(OSError):  # a kernel without huge pages
                fresh.madvise(mmap.MADV_NOHUGEPAGE)
            pages = torch.frombuffer(fresh, dtype=torch.uint8)
            before = page_faults()
            first = _timed(partial(pages.fill_, 1), 1)[0]
            faults = page_faults() - before
            second = min(_timed(partial(pages.fill_, 1), _AGAIN))
            back = _timed(partial(fresh.madvise, mmap.MADV_DONTNEED), 1)[0]
            del pages  # the mapping cannot be closed while a tensor lies in it
        if faults < _FRESH_BYTES // mmap.PAGESIZE // 2:
            raise NotMeasured("page faults are not counted on this system")
        return (first - second + back) / faults

    seconds = _samples(take, _share(deadline, 0.1))
    value = median(seconds) * 1e6
    if value <= 0:
        raise NotMeasured("other work disturbed the measurement")
    detail = f"first fill minus the fastest of {_AGAIN} repeats, and back, {gauge.threads}"
    size = byte_words(_FRESH_BYTES)
    return Ceiling("page_fault", value, "us", len(seconds), "host", size=size, detail=detail)


def _timed(act: Callable[[], object], runs: int) -> list[float]:
    seconds = []
    for _ in range(runs):
        began = time.perf_counter()
        act()
        seconds.append(time.perf_counter() - began)
    return seconds


def cache_sizes(folder: Path = _CACHES) -> dict[int, int]:
    """Level → bytes of the first processor's data caches; empty where sysfs has none."""
    found = {}
    for each in folder.glob("index*"):
        with suppress(OSError, ValueError):
            names = ("type", "level", "size")
            kind, level, size = ((each / name).read_text("ascii").strip() for name in names)
            if kind in ("Data", "Unified"):
                found[int(level)] = int(size.removesuffix("K")) * 1024
    return found


def free_bytes(meminfo: Path = MEMINFO, group: Path = Path("/sys/fs/cgroup")) -> int:
    """Memory that the machine, and the control group, still have to give; 0 if not known."""
    available = proc_bytes(meminfo, "MemAvailable") or 0
    with suppress(OSError, ValueError):
        limit = (group / "memory.max").read_text(encoding="ascii").strip()
        if limit != "max":
            used = int((group / "memory.current").read_text(encoding="ascii"))
            available = min(available, max(0, int(limit) - used))
    return available
