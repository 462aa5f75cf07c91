"""Percentile bootstrap of a median and of a ratio of medians.

Source: B. Efron and R. J. Tibshirani, *An Introduction to the Bootstrap* (1993), chapter 13.
Values may have weights: pairs are drawn, each with its weight, and the median is the value that
parts the weights in halves (Edgeworth's weighted median). Weights count as many values as would be
as exact if all weighed the same: (sum of w)² / sum of w² (L. Kish, *Survey Sampling*, 1965).
Resampled medians never leave the range of the sample, and that range misses the true median with
a probability of 2 · (1/2)^n: 25 % for three values. Below six values the interval is therefore
widened to that of Student's t on the logarithms (all values are times or their ratios).
From six values on, the percentiles are those of T. Hesterberg, "What Teachers Should Know About
the Bootstrap" (2014), section 5: resampling scatters by sqrt((n - 1) / n) too little and knows
nothing of Student's t, so n values take the percentiles at -+ sqrt(n / (n - 1)) t of a normal.
Samples are drawn with replacement by a seeded generator: the same tables give the same interval.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate
from math import exp, isclose, log, sqrt
from random import Random
from statistics import NormalDist, median
from typing import TypeVar

RESAMPLES = 2000
LEVEL = 0.95
#: More values than this are thinned evenly: the interval of a median is narrow long before.
MOST_VALUES = 200
_SEED = 20260101
#: 97.5 % quantiles of Student's t by degrees of freedom: as many as there are values, less one.
_STUDENT = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776}

Interval = tuple[float, float]
T = TypeVar("T")


def weighted_median(values: Sequence[float], weights: Sequence[float]) -> float:
    """The value that parts the weights in halves; between two values their mean."""
    ordered = sorted(zip(values, weights, strict=True))
    return _parting([value for value, _ in ordered], [weight for _, weight in ordered])


def _parting(values: Sequence[float], weights: Sequence[float]) -> float:
    """The same of values in order."""
    reached = list(accumulate(weights))
    half = reached[-1] / 2
    at = bisect_left(reached, half * (1 - 1e-12))
    if isclose(reached[at], half) and at + 1 < len(values):
        return (values[at] + values[at + 1]) / 2
    return values[at]


def median_interval(values: Sequence[float], weights: Sequence[float] | None = None) -> Interval:
    """The 95 % interval of the median of ``values`` (at least one, all of them positive)."""
    weights = [1.0] * len(values) if weights is None else weights
    sample = thin(list(zip(values, weights, strict=True)))
    total, number = sum(weights), len(values)
    alike = total**2 / sum(weight**2 for weight in weights)
    low, high = _weighted_interval(tuple(sample), alike)
    if number < 2 or alike > max(_STUDENT) + 1.5:
        return low, high
    # The 95 % interval of the geometric mean of values that count as two to five.
    logs = [log(value) for value in values]
    mean = sum(w * x for w, x in zip(weights, logs, strict=True)) / total
    squares = sum((w * (x - mean)) ** 2 for w, x in zip(weights, logs, strict=True))
    half = _STUDENT[max(1, round(alike) - 1)] * sqrt(number / (number - 1) * squares) / total
    return min(low, exp(mean - half)), max(high, exp(mean + half))


@lru_cache(maxsize=64)  # of one region's pairs two tables have it
def _weighted_interval(sample: tuple[tuple[float, float], ...], count: float) -> Interval:
    """The same of (value, weight) that count as ``count``: places in their order sort quicker."""
    ordered = sorted(sample)
    values, weights = zip(*ordered, strict=True)
    place = {pair: at for at, pair in enumerate(ordered)}
    places = bytes(place[pair] for pair in sample).ljust(256)
    alike, half = len(set(weights)) == 1, len(sample) // 2

    def figure(resample: bytes) -> float:
        drawn = sorted(resample.translate(places))
        if not alike:
            return _parting([values[at] for at in drawn], [weights[at] for at in drawn])
        upper: float = values[drawn[half]]
        return upper if len(drawn) % 2 else (values[drawn[half - 1]] + upper) / 2

    return _interval(map(figure, _resamples(len(sample))), count)


@lru_cache(maxsize=16)  # samples are as large as others of the same run
def _resamples(size: int) -> list[bytes]:
    """Numbers of what is drawn of ``size`` values each time (at most MOST_VALUES: a byte each)."""
    random, numbers = Random(_SEED), range(size)
    return [bytes(random.choices(numbers, k=size)) for _ in range(RESAMPLES)]


def ratio_interval(over: Sequence[float], under: Sequence[float]) -> Interval:
    """The 95 % interval of median(over) / median(under), both sides drawn independently."""
    top, bottom, random = thin(over), thin(under), Random(_SEED)

    def draw() -> float:
        above = median(random.choices(top, k=len(top)))
        return above / median(random.choices(bottom, k=len(bottom)))

    return _interval((draw() for _ in range(RESAMPLES)), min(len(top), len(bottom)))


def thin(values: Sequence[T], most: int = MOST_VALUES) -> list[T]:
    """At most ``most`` of ``values``, evenly spaced."""
    if len(values) <= most:
        return list(values)
    return [values[index * len(values) // most] for index in range(most)]


def _interval(drawn: Iterable[float], count: float) -> Interval:
    """From RESAMPLES figures of draws of a sample whose values count as ``count``.

    Student's t is within 0.1 % from five degrees of freedom on: M. Abramowitz and I. A. Stegun,
    Handbook of Mathematical Functions (1964), 26.7.5.
    """
    draws = sorted(drawn)
    degrees = max(count, 6.0) - 1
    z = NormalDist().inv_cdf((1 + LEVEL) / 2)
    first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    student = z + first / degrees + second / degrees**2 + third / degrees**3
    expanded = sqrt((degrees + 1) / degrees) * student
    tail = NormalDist().cdf(-expanded)
    return draws[int(tail * RESAMPLES)], draws[int((1 - tail) * RESAMPLES) - 1]
