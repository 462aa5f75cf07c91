"""Intervals of time, in nanoseconds: unions, gaps, and time shared between what overlaps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

Interval = tuple[int, int]


def merge(intervals: Iterable[Interval]) -> list[Interval]:
    """The union as disjoint intervals in order; touching ones are joined, empty ones dropped."""
    merged: list[Interval] = []
    for start, end in sorted(pair for pair in intervals if pair[0] < pair[1]):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def length(intervals: Iterable[Interval]) -> int:
    """Time that the union covers."""
    return sum(end - start for start, end in merge(intervals))


def shared_time(labels: Sequence[str], intervals: Sequence[Interval]) -> dict[str, float]:
    """Time of each label, every instant counted once.

    Where several intervals overlap, each gets an even part of the time; the sum is the length of
    the union.
    """
    edges: list[tuple[int, int, str]] = []
    for label, (start, end) in zip(labels, intervals, strict=True):
        if start < end:
            edges += ((start, 1, label), (end, -1, label))
    edges.sort(key=lambda edge: edge[0])
    active: Counter[str] = Counter()
    shares: dict[str, float] = {}
    running, before = 0, 0
    for time, change, label in edges:
        if running and time > before:
            part = (time - before) / running
            for name, times in active.items():
                if times:
                    shares[name] = shares.get(name, 0.0) + part * times
        active[label] += change
        running += change
        before = time
    return shares
