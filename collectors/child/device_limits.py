"""Ceilings of a CUDA device, by its own events but for the launch, which is the host's time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from typing import Any

from . import ceilings
from .ceilings import Ceiling, NotMeasured, Task, Way, best_rate, byte_words, share

_MATMUL_SIZES = (4096, 8192)
_L2_PASSES_BYTES = 4e9  # that one kernel moves within the L2
_LINE = 128  # bytes of a cache line
_REST_S = 0.1  # after which a device may draw more power than its limit again, for some 50 ms
_TINY = 300  # launches in a row; the driver queues about a thousand
_SPIN_CYCLES = 20_000_000  # some 10 ms, in which the host gets ahead


def device_tasks(torch: Any) -> Iterator[Task]:
    """Launches, copy beyond the L2 and inside it, matrix products; on the current device."""
    room = min(torch.cuda.mem_get_info()[0] // 8, ceilings.LARGEST_BYTES) // 4096 * 4096
    if room < ceilings.LEAST_BYTES:
        raise NotMeasured(f"only {byte_words(room)} of the device's memory may be used for it")
    seed = torch.Generator(device="cuda").manual_seed(0)
    arena = torch.empty(room, dtype=torch.uint8, device="cuda").random_(generator=seed)
    flush = room // 8 // 4096 * 4096  # cleared before every run: as triton.testing.do_bench does
    timed = partial(seconds_of, torch, arena[-flush:])
    arena = arena[:-flush]
    yield Task("launch", partial(_launch, torch))
    yield Task("kernel gap", partial(_kernel_gap, torch))
    yield Task("copy", partial(_copy, torch, arena, timed))
    yield Task("copy in the L2", partial(_l2_copy, torch, arena, timed))
    for name in ("bfloat16", "float16", "float32"):
        yield Task(f"matmul {name}", partial(_matmul, torch, arena, timed, seed, name))


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


def _copy(torch: Any, arena: Any, timed: ceilings.Timed, deadline: float) -> Ceiling:
    ways = ceilings.copies(torch, arena, arena.numel())
    return _bandwidth("copy", best_rate(ways, timed, share(deadline, 0.2)))


def _l2_copy(torch: Any, arena: Any, timed: ceilings.Timed, deadline: float) -> Ceiling:
    """One kernel that copies the same few MiB many times over.

    A kernel for each time would end before the next one starts: what is timed would be launches.
    """
    l2 = getattr(torch.cuda.get_device_properties("cuda"), "L2_cache_size", 0)
    if not l2 or l2 > arena.numel():
        raise NotMeasured("the size of the L2 is not known")
    ways = [_passes(torch, arena, l2 // part) for part in (4, 2)]
    return _bandwidth("l2_copy", best_rate(ways, timed, share(deadline, 0.2)))


def _passes(torch: Any, arena: Any, size: int) -> Way:
    """Rows that lie one cache line after each other: a pass over all but the same bytes each.

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


def _bandwidth(kind: str, found: tuple[Way, float, int]) -> Ceiling:
    way, rate, runs = found
    return Ceiling(kind, rate / 1e9, "GB/s", runs, "device", size=way.size, detail=way.detail)


def _matmul(
    torch: Any, arena: Any, timed: ceilings.Timed, seed: Any, name: str, deadline: float
) -> Ceiling:
    ways = ceilings.matmuls(torch, arena, getattr(torch, name), _MATMUL_SIZES, seed)
    way, rate, runs = best_rate(ways, timed, share(deadline, 0.45), rest_s=_REST_S)
    tf32 = f"tf32 {'on' if _tf32(torch) else 'off'}, " if name == "float32" else ""
    detail = f"{tf32}{way.detail}"
    return Ceiling("matmul", rate / 1e12, "TFLOP/s", runs, "device", name, way.size, detail)


def _tf32(torch: Any) -> bool:
    """As the script has set it, by the old switch or by the new one (2.9)."""
    settings = torch.backends.cuda.matmul
    try:
        return bool(settings.allow_tf32)
    except RuntimeError:  # the script uses the new one
        return bool(settings.fp32_precision == "tf32")


def _launch(torch: Any, deadline: float) -> Ceiling:
    """Host time of a launch that does nothing, past torch's dispatcher."""
    tiny, until = torch.cuda._sleep, share(deadline, 0.05)
    seconds: list[float] = []
    while len(seconds) < ceilings.LEAST_RUNS or (
        len(seconds) < ceilings.MOST_RUNS and time.monotonic() < until
    ):
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(_TINY):
            tiny(0)
        seconds.append((time.perf_counter() - began) / _TINY)
    torch.cuda.synchronize()
    return _tiny("launch", seconds[1:], "host")


def _kernel_gap(torch: Any, _deadline: float) -> Ceiling:
    """Start to start of kernels that do nothing, queued up behind one that lasts long enough."""
    seconds = []
    for _ in range(2 * ceilings.LEAST_RUNS):
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
    detail = "one thread that does nothing"
    return Ceiling(kind, median(seconds) * 1e6, "us", len(seconds), clock, detail=detail)
