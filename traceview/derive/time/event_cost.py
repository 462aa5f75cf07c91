"""What an event of the profiler's costs the host: found, not assumed."""

from __future__ import annotations

from collections.abc import Callable

#: More than this the profiler cannot have cost per event. Measured with torch 2.13 and 2.11: 0.5 to
#: 2 µs an operator, about 4 µs a CUDA call, up to 12 µs a range that Python opens and closes.
MOST_EVENT_US = 12.0
#: Near enough: part of a step, and µs.
_CLOSE, _FINEST_US = 1e-4, 0.01
_MOST_TURNS = 16


def event_cost(
    length: Callable[[float], float], timed: float | None
) -> tuple[float | None, float | None]:
    """(µs an event, ns that are unexplained): the least cost that comes nearest to ``timed`` ns.

    ``length`` gives the window's ns without so many µs an event; it never grows with them. No cost
    is known where the window is no longer than ``timed``, or as long whatever an event costs.
    """
    if timed is None:
        return None, None
    whole, least = length(0.0), length(MOST_EVENT_US)
    aim = max(timed, least)
    if whole <= aim * (1 + _CLOSE):
        return None, timed - whole
    low, high = (0.0, whole), (MOST_EVENT_US, least)
    for turn in range(_MOST_TURNS):
        if high[0] - low[0] < _FINEST_US:
            break
        # By turns on the line between the ends, and half way, where that line tells little.
        part = (low[1] - aim) / (low[1] - high[1]) if turn % 2 == 0 else 0.5
        us = low[0] + part * (high[0] - low[0])
        found = us, length(us)
        if abs(found[1] - timed) <= timed * _CLOSE:
            return us, timed - found[1]
        low, high = (low, found) if found[1] <= aim * (1 + _CLOSE) else (found, high)
    return high[0], timed - high[1]
