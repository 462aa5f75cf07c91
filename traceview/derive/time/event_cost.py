"""What an event of the profiler's costs the host: found, not assumed."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

Interval = tuple[float, float]

#: More than this the profiler cannot have cost per event, on a machine at its usual speed. Measured
#: with torch 2.13 and 2.11: 0.5 to 2 µs an operator, some 4 µs a CUDA call, up to 12 µs a range
#: that Python opens and closes.
MOST_EVENT_US = 12.0
#: Near enough: part of a step, and µs.
_CLOSE, _FINEST_US = 1e-4, 0.01
_MOST_TURNS = 16


class EventCost(NamedTuple):
    """``us`` an event; ``timed``: ns that the window takes without the profiler; ns ``left`` of it.

    All None where no unprofiled time is known; ``us`` also where this window does not tell.
    """

    us: float | None = None
    timed: float | None = None
    left: float | None = None


def event_cost(length: Callable[[float], float], between: Interval | None) -> EventCost:
    """The least cost of an event with which the window takes a time that lies ``between`` (ns).

    ``length`` gives the window's ns without so many µs an event; it never grows with them. No cost
    is known where the window is no longer than that, or as long whatever an event costs.
    """
    if between is None:
        return EventCost()
    low, high = between
    most = MOST_EVENT_US * high / low  # a machine at half its speed takes twice as long for each
    whole, least = length(0.0), length(most)
    # Between the two everything is as likely: the middle, if any cost leads there.
    timed = min(max((low + high) / 2, least, low), max(whole, low), high)
    return EventCost(*_search(length, timed, (0.0, whole), (most, least)))


def _search(
    length: Callable[[float], float], timed: float, low: Interval, high: Interval
) -> tuple[float | None, float, float]:
    """(µs an event, ``timed``, ns unexplained); ``low``, ``high``: µs an event, the length then."""
    least = high[1]
    aim = max(timed, least)
    if low[1] <= aim * (1 + _CLOSE):
        return None, timed, timed - low[1]
    for turn in range(_MOST_TURNS):
        if high[0] - low[0] < _FINEST_US:
            break
        # By turns on the line between the ends, and half way, where that line tells little.
        on_line = turn % 2 == 0 and aim > least
        part = (low[1] - aim) / (low[1] - high[1]) if on_line else 0.5
        us = low[0] + part * (high[0] - low[0])
        found = us, length(us)
        # At the least length many costs are alike, and the least one is asked for.
        if aim > least and abs(found[1] - timed) <= timed * _CLOSE:
            return us, timed, timed - found[1]
        low, high = (low, found) if found[1] <= aim * (1 + _CLOSE) else (found, high)
    return high[0], timed, timed - high[1]
