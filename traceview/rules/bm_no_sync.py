"""
## What it finds
A timer of the script's own around calls of compiled code that reads the host's clock while the GPU
is still working.

## Why it costs
It costs no time; it makes the script print the wrong figure. A call on a GPU returns as soon as its
kernels are queued, so the clock shows how long queueing took. The queue holds about 1,000 launches;
only when it is full does the host run at the GPU's pace, so short loops are the most wrong.

## Evidence
The script's source: between two readings of a host clock there are calls of compiled code and
nothing that waits for the device (`torch.cuda.synchronize()`, `.item()`, `.cpu()`, an event). The
clock may be read in a helper that is given the callable, in a decorator, in a context manager of
the same file, or by `timeit` or pytest-benchmark, which do not wait. The profiler window shows no
wait either. And in traceview's own blocks of such steps, timed by both clocks, the host was done
well before the device.

A warning where 5 % or more of the time is missing from the figure: the loop's length is in the
source, or the script ended by itself after that many calls. Information where the length is not
known. No finding where the clock covers enough calls for the figure to be nearly right.

## What to do
`torch.cuda.synchronize()` before each reading of the clock; or `torch.utils.benchmark.Timer`, which
does so.

## Settings
- `least_ratio`: a step's time on the device over the host's, from which the rule reports it.

## References
- https://docs.pytorch.org/docs/stable/notes/cuda.html
- https://docs.pytorch.org/tutorials/recipes/recipes/benchmark.html
- torch/utils/benchmark/utils/timer.py
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean, median

import msgspec

from traceview.rules._gain import launches
from traceview.rules.kit import (
    NOTABLE_SHARE,
    Cost,
    Evidence,
    Finding,
    Location,
    Snippet,
    Tables,
    first,
    first_rank,
    milliseconds,
    percent,
    plural,
    rows,
    speedup,
)
from traceview.words import names

CODE = "TV902"
NEEDS = frozenset(
    {"script_timers", "blocks", "calls", "step_counts", "speedups", "runs", "regions"}
)
SEVERITIES = ("warning", "info")
GPU_ONLY = True

#: Where the host takes nearly as long, the figure is nearly right.
LEAST_RATIO = 1.2
#: Launches that CUDA queues before the next one has to wait.
QUEUE = 1024
#: Calls whose mean is that of all: one that waits for all others is rare.
ENOUGH_CALLS = 10
#: Clocks of CPU time measure something else, and clocks that synchronize are right.
_CLOCKS = (
    *("time.time", "time.perf_counter", "time.monotonic"),
    *("timeit.default_timer", "timeit.timeit", "timeit.repeat", "pytest-benchmark"),
)


class Pace(msgspec.Struct, frozen=True):
    """A compiled step: ms on the device, ms of the host for queueing it, launches.

    ``alone``: it is one call, and ``host`` the mean of calls by themselves, whatever waits between.
    """

    device: float
    host: float
    launches: float
    alone: bool = False

    @classmethod
    def of(cls, tables: Tables) -> Pace | None:
        """None where a step waits for the device by itself, or where that is not known."""
        counts = first(tables, "step_counts", stance="compiled")
        found = speedup(tables)
        if not counts or counts["syncs"] != 0 or not counts["launches"] or not found:
            return None
        most = QUEUE / counts["launches"]  # in longer blocks a full queue may have held the host
        blocks = first_rank(rows(tables, "blocks", stance="compiled", clock="device"))
        hosts = [
            row["host_ms"] / row["steps"]
            for row in blocks
            if row["host_ms"] and row["steps"] and row["steps"] <= most
            if not row["compiles_inside"]
        ]
        if not hosts or not found["compiled_ms"]:
            return None
        return cls(found["compiled_ms"], median(hosts), counts["launches"])

    @classmethod
    def of_calls(cls, tables: Tables, region_id: int) -> Pace | None:
        """Of the one call of a step, where the calls were watched that way."""
        counts, found = first(tables, "step_counts", stance="compiled"), speedup(tables)
        anchor = first(tables, "regions", region_id=region_id)
        calls = first_rank(rows(tables, "calls", region_id=region_id, stance="compiled"))
        hosts = [row["host_ms"] for row in calls if not row["compiles_inside"] and row["outermost"]]
        if (
            not counts
            or not found
            or not found["compiled_ms"]
            or not anchor
            or len(hosts) < ENOUGH_CALLS
        ):
            return None
        run = first(tables, "runs")
        if not anchor["is_anchor"] or not run or run["step_kind"] != "call":
            return None
        return cls(found["compiled_ms"], fmean(hosts), counts["launches"] or 0.0, alone=True)

    def missing(self, calls: int) -> float:
        """Part of the time of that many calls, 0 to 1, that is still queued when they return."""
        if self.alone:
            return 1 - self.host / self.device
        return min(1 - self.host / self.device, QUEUE / (self.launches * calls))

    def figure(self, calls: int | None) -> str:
        """How wrong a figure over that many calls is; None: their number is not known."""
        if self.alone:
            return f"{percent(self.missing(1))} of the time of a call is missing"
        if calls is not None:
            return (
                f"{percent(self.missing(calls))} of the time of {plural(calls, 'call')} is missing"
            )
        enough = round(QUEUE / (self.launches * NOTABLE_SHARE))
        return (
            f"a short loop misses {percent(self.missing(1))} of the time, one of {enough:,} calls "
            "or more less than 5 %"
        )


def check(tables: Tables, *, least_ratio: float = LEAST_RATIO) -> Iterator[Finding]:
    """One finding for each clock of the script's."""
    of_steps = Pace.of(tables)
    run = first(tables, "runs")
    ended = run is not None and run["exit_kind"] == "exit"
    seen: set[tuple[str, int, int]] = set()
    for timer in first_rank(rows(tables, "script_timers")):
        file, start, read = key = timer["file"], timer["start_line"], timer["read_line"]
        clock = timer["clock"]
        by_host = str(clock).removesuffix("_ns") in _CLOCKS
        # A clock around the compile as well is more wrong for that, and another rule reports it.
        cold = timer["spans_first_call"] and timer["calls_in_loop"]
        if key in seen or not by_host or timer["waits"] is not False or cold:
            continue
        pace = None if timer["calls_in_loop"] else Pace.of_calls(tables, timer["region_id"])
        pace = pace or of_steps
        if pace is None or pace.device < least_ratio * pace.host:
            continue
        seen.add(key)
        calls = timer["calls"]  # that the clock times at most; None: not known
        if calls is None and ended:
            region = first(tables, "regions", region_id=timer["region_id"])
            calls = region["outermost_calls"] if region else None
        calls = 1 if pace.alone else int(calls) if calls else None
        if calls is not None and pace.missing(calls) < NOTABLE_SHARE:
            continue

        at = names.lines(start, read)
        between = f"calls at line {timer['call_line']}, nothing between them that waits"
        by_clocks = (
            f"{milliseconds(pace.host)} by the host's clock, {milliseconds(pace.device)} by the "
            f"GPU's; {launches(pace.launches)}"
        )
        whose = "a compiled step in unprofiled blocks", "blocks"
        if pace.alone:
            whose = "a compiled call, on average of those watched", "calls"
        else:
            by_clocks += " and no wait"
        yield Finding(
            code=CODE,
            rule="bm-no-sync",
            severity="info" if calls is None else "warning",
            title=f"The script's own timer ({at}) does not wait for the GPU",
            explanation=(
                f"{clock} is read while kernels are still queued: the calls of a step return "
                f"after {milliseconds(pace.host)}, and the GPU needs "
                f"{milliseconds(pace.device)} for them. traceview's own figures use the GPU's "
                "clock."
            ),
            cost=Cost(about=f"no time, but a wrong figure: {pace.figure(calls)}"),
            confidence="derived",
            location=Location(file, read, timer["function"]),
            evidence=(
                Evidence(f"{clock} at {at}, {between}", "script_timers"),
                Evidence(f"{whose[0]}: {by_clocks}", whose[1]),
            ),
            what_to_do=(
                "Wait for the GPU before each reading of the clock, or use "
                "torch.utils.benchmark.Timer, which does."
            ),
            snippet=Snippet("python", "torch.cuda.synchronize()  # before the clock is read"),
        )
