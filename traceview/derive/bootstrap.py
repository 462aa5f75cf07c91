"""Percentile bootstrap of a median and of a ratio of medians.

Source: B. Efron and R. J. Tibshirani, *An Introduction to the Bootstrap* (1993), chapter 13.
Samples are drawn with replacement by a seeded generator: the same tables give the same interval.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from statistics import median

RESAMPLES = 2000
LEVEL = 0.95
#: More values than this are thinned evenly: the interval of a median is narrow long before.
MOST_VALUES = 200
_SEED = 20260101

Interval = tuple[float, float]


def median_interval(values: Sequence[float]) -> Interval:
    """The 95 % interval of the median of ``values`` (at least one)."""
    sample, random = thin(values), Random(_SEED)
    return _interval(lambda: median(random.choices(sample, k=len(sample))))


def ratio_interval(over: Sequence[float], under: Sequence[float]) -> Interval:
    """The 95 % interval of median(over) / median(under), both sides drawn independently."""
    top, bottom, random = thin(over), thin(under), Random(_SEED)

    def draw() -> float:
        above = median(random.choices(top, k=len(top)))
        return above / median(random.choices(bottom, k=len(bottom)))

    return _interval(draw)


def thin(values: Sequence[float], most: int = MOST_VALUES) -> list[float]:
    """At most ``most`` of ``values``, evenly spaced."""
    if len(values) <= most:
        return list(values)
    return [values[index * len(values) // most] for index in range(most)]


def _interval(draw: Callable[[], float]) -> Interval:
    draws = sorted(draw() for _ in range(RESAMPLES))
    tail = (1 - LEVEL) / 2
    return draws[int(tail * RESAMPLES)], draws[int((1 - tail) * RESAMPLES) - 1]
