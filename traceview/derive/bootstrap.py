"""Percentile bootstrap of a median and of a ratio of medians.

Source: B. Efron and R. J. Tibshirani, *An Introduction to the Bootstrap* (1993), chapter 13.
Resampled medians never leave the range of the sample, and that range misses the true median with
a probability of 2 · (1/2)^n: 25 % for three values. Below six values the interval is therefore
widened to that of Student's t on the logarithms (all values are times or their ratios).
Samples are drawn with replacement by a seeded generator: the same tables give the same interval.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp, log, sqrt
from random import Random
from statistics import mean, median, stdev

RESAMPLES = 2000
LEVEL = 0.95
#: More values than this are thinned evenly: the interval of a median is narrow long before.
MOST_VALUES = 200
_SEED = 20260101
#: 97.5 % quantiles of Student's t by degrees of freedom: as many as there are values, less one.
_STUDENT = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776}

Interval = tuple[float, float]


def median_interval(values: Sequence[float]) -> Interval:
    """The 95 % interval of the median of ``values`` (at least one, all of them positive)."""
    sample, random = thin(values), Random(_SEED)
    low, high = _interval(lambda: median(random.choices(sample, k=len(sample))))
    if len(values) - 1 not in _STUDENT:
        return low, high
    # The 95 % interval of the geometric mean of two to five values.
    logs = [log(value) for value in values]
    half = _STUDENT[len(values) - 1] * stdev(logs) / sqrt(len(logs))
    return min(low, exp(mean(logs) - half)), max(high, exp(mean(logs) + half))


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
