"""Pairs of timed blocks, and how exactly they show the speedup. Pure, and quick enough for an edge.

The plan ends by it and the progress line shows it; the report's own interval is a bootstrap.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

#: Pairs below which nothing is concluded from how they scatter.
FEWEST = 8
_ORDER = ("eager", "compiled", "trial")


@dataclass(frozen=True)
class Pair:
    """A measured pair of blocks: ``ratio`` of eager to compiled ms per step, or of what a trial is
    compared with to the trial's.

    ``length``: the harmonic mean of the steps of both. The variance of the ratio's logarithm is
    the sum of both blocks', and that of a mean over steps falls with their number.
    """

    index: int
    ratio: float
    length: float
    compiles: int = 0


@dataclass(frozen=True)
class Block:
    """A measured block: its time in ms, steps, and compiles that ended inside."""

    ms: float
    steps: int
    compiles: int


def paired(index: int, sides: Mapping[str, Block]) -> Pair:
    """The pair of two stances' blocks."""
    one, other = (sides[stance] for stance in _ORDER if stance in sides)
    ratio = (one.ms / one.steps) / (other.ms / other.steps)
    length = 2 * one.steps * other.steps / (one.steps + other.steps)
    return Pair(index, ratio, length, one.compiles + other.compiles)


def counting(pairs: Sequence[Pair], first: int, *, restless: bool) -> list[Pair]:
    """Those from number ``first`` on in which nothing was compiled; of a ``restless`` script all,
    where such pairs are fewer than `FEWEST`.
    """
    own = [pair for pair in pairs if pair.index >= first]
    quiet = [pair for pair in own if not pair.compiles]
    return own if restless and len(quiet) < FEWEST else quiet


def interval(pairs: Sequence[Pair]) -> tuple[float, float] | None:
    """The 95 % interval of the pairs' weighted median; None below six pairs of equal weight.

    Quick, for it is worked out between blocks; the report's own is a bootstrap. From a sign test
    (Dixon and Mood, "The Statistical Sign Test", 1946) with weights, turned round: the interval
    holds every value that parts the weights no more unevenly than random signs would in 95 % of
    cases. Where weights are equal, these are the ranks that the binomial distribution gives. A pair
    weighs as much as it is long, up to half the longest (traceview/derive/pairs.py).
    """
    most = max((pair.length for pair in pairs), default=0.0) / 2
    ordered = sorted((pair.ratio, min(pair.length, most)) for pair in pairs)
    total, squares = sum(w for _, w in ordered), sum(w * w for _, w in ordered)
    if not ordered or total**2 < 5.99 * squares:  # fewer than six of equal weight (Kish, 1965)
        return None

    def end(towards: Sequence[tuple[float, float]]) -> float:
        outside = 0.0
        for ratio, weight in towards:
            outside += weight
            if total - 2 * outside <= 1.96 * math.sqrt(squares):
                return ratio
        return towards[-1][0]

    return end(ordered), end(ordered[::-1])


def longest_worthwhile(pairs: Sequence[Pair], skipped: int) -> float | None:
    """The block length from which on longer blocks are worse than more of them; None: not known.

    The variance between pairs is ``between + within / length``. Steps left out at each switch make
    sqrt(skipped · within / between) the length at which a number of steps gives the most exact
    mean (W. G. Cochran, Sampling Techniques, 1977, section 10.6: two stages, with costs). Both
    parts are estimated from the scatter of the shorter and of the longer half of the pairs.
    """
    if len(pairs) < FEWEST:
        return None
    ordered = sorted(pairs, key=lambda pair: pair.length)
    halves = ordered[: len(ordered) // 2], ordered[len(ordered) // 2 :]
    inverse, scatter = [], []
    for half in halves:
        logs = [math.log(pair.ratio) for pair in half]
        middle = median(logs)
        inverse.append(fmean(1 / pair.length for pair in half))
        scatter.append((1.4826 * median(abs(each - middle) for each in logs)) ** 2)
    if inverse[0] < 1.25 * inverse[1]:  # lengths too much alike to say
        return None
    within = (scatter[0] - scatter[1]) / (inverse[0] - inverse[1])
    between = scatter[1] - within * inverse[1]
    if between <= 0:
        return math.inf
    return math.sqrt(skipped * within / between) if within > 0 else 0.0
