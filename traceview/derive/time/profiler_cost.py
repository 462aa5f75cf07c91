"""What the profiler adds to a step: around events, at memory pages, in collectives.

- An event costs the host about the same time wherever it is recorded. How much is not assumed: it
  is searched for (``event_cost``).
- The profiler's own blocks split what freed tensors leave (glibc's allocator), and tensors move to
  memory that was never touched before: the same step waits for the operating system at pages at
  which it otherwise does not. How many more a step has in the window than in the timed blocks is
  counted, and what one takes is measured in the run (``page_fault`` among the ceilings).
- A kernel of a collective runs from its own rank's launch until all ranks have taken part. The rank
  that comes last waits for no one, so what the same collective takes longer on another is a wait.
  The profiler makes all hosts slower, and these waits longer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import polars as pl

from traceview.derive.limits.ceilings import ceilings_of
from traceview.derive.windows import Window
from traceview.tables import Tables

Interval = tuple[float, float]

#: More than this the profiler cannot have cost per event, on a machine at its usual speed. Measured
#: with torch 2.13 and 2.11: 0.5 to 2 µs an operator, some 4 µs a CUDA call, up to 12 µs a range
#: that Python opens and closes.
MOST_EVENT_US = 12.0
#: Near enough: part of a step, and µs.
_CLOSE, _FINEST_US = 1e-4, 0.01
_MOST_TURNS = 16
#: The same collective on two ranks: the n-th of a name in the same step.
_SAME = ("step", "name", "n")


class EventCost(NamedTuple):
    """``us`` an event; ``timed``: ns that the window takes without the profiler; ns ``left`` of it.

    All None where no unprofiled time is known; ``us`` also where this window does not show it.
    """

    us: float | None = None
    timed: float | None = None
    left: float | None = None


def event_cost(
    length: Callable[[float], float], between: Interval | None, queued: float = 0.0
) -> EventCost:
    """The least cost of an event with which the window takes a time ``between`` these (ns).

    ``length`` gives the window's ns without that many µs an event; it never grows with them.
    ``queued``: ns of the shorter of the two that a window need not have waited. No cost is known
    where the window is no longer than that, or as long whatever an event costs.
    """
    if between is None:
        return EventCost()
    low, high = between
    most = MOST_EVENT_US * high / low  # a machine at half its speed takes twice as long for each
    whole, least = length(0.0), length(most)
    low = min(low, max(low - queued, whole))
    # Between the two everything is as likely: the middle, if any cost leads there.
    timed = min(max((low + high) / 2, least, low), max(whole, low), high)
    aim = max(timed, least)
    if whole <= aim * (1 + _CLOSE):
        return EventCost(None, timed, timed - whole)
    below, above = (0.0, whole), (most, least)  # µs an event, the length then
    for turn in range(_MOST_TURNS):
        if above[0] - below[0] < _FINEST_US:
            break
        # In turns on the line between the ends, and half way, where that line says little.
        on_line = turn % 2 == 0 and aim > least
        part = (below[1] - aim) / (below[1] - above[1]) if on_line else 0.5
        us = below[0] + part * (above[0] - below[0])
        found = us, length(us)
        # At the least length many costs are alike, and the least one is asked for.
        if aim > least and abs(found[1] - timed) <= timed * _CLOSE:
            return EventCost(us, timed, timed - found[1])
        below, above = (below, found) if found[1] <= aim * (1 + _CLOSE) else (found, above)
    return EventCost(above[0], timed, timed - above[1])


class Faults(NamedTuple):
    """Minor faults a step in the timed blocks and in the window; None where they were not counted.

    ``cost_us``: what one takes, None where that was not measured.
    """

    timed: float | None
    profiled: float | None
    cost_us: float | None

    def profilers_ms(self, events: float) -> float:
        """Milliseconds a step that the profiler's faults take; ``events`` were recorded a step.

        An event's record takes less than a page of the profiler's own memory: up to one fault an
        event happens around events, and counts as their cost.
        """
        if self.timed is None or self.profiled is None or self.cost_us is None:
            return 0.0
        return max(0.0, self.profiled - self.timed - events) * self.cost_us / 1e3


def faults_of(tables: Tables, window: Window) -> Faults:
    """The faults of a window's steps and of the timed blocks of its stance."""
    share = pl.col("page_faults") / pl.col("steps")
    blocks = window.own(tables["blocks"]).select(share)
    times = window.own(tables["profile_windows"]).filter(purpose="time").select(share)
    cost = ceilings_of(tables, window.pass_name, window.rank, "cpu").fault_us
    timed = blocks["page_faults"].median()
    profiled = next(reversed(times["page_faults"].drop_nulls().to_list()), None)
    return Faults(timed if isinstance(timed, float) else None, profiled, cost)


def waits_ns(tables: Tables, window: Window) -> float:
    """ns of the window's collectives beyond the shortest of any rank; 0 without other ranks."""
    mine = _collectives(window.main_kernels)
    rank = pl.lit(window.rank, dtype=pl.Int32)
    others = tables["kernels"].filter(
        pl.col("pass").eq(window.pass_name),
        pl.col("stance").eq(window.stance),
        pl.col("rank").ne_missing(rank),
    )
    if mine.is_empty() or others.is_empty():
        return 0.0
    shortest = _collectives(others).group_by(_SAME).agg(least=pl.col("duration_ns").min())
    waits = mine.join(shortest, on=_SAME).select(pl.col("duration_ns") - pl.col("least"))
    return float(waits["duration_ns"].clip(lower_bound=0).sum())


def _collectives(kernels: pl.DataFrame) -> pl.DataFrame:
    """Kernels that communicate, with ``n``: the how-many-th of its name in its rank's step."""
    mine = kernels.filter(category="communication").drop_nulls("step").sort("start_ns")
    return mine.with_columns(n=pl.int_range(pl.len()).over("rank", "step", "name"))
