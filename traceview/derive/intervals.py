"""Intervals of time, ns: unions, what they cover, and time shared between what overlaps.

As pairs (``Interval``) or, where there are many, as rows of a table with the columns ``start`` and
``end``, and ``tid`` where threads matter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import polars as pl

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


def shared(interval: Interval, others: Iterable[Interval]) -> int:
    """Time of ``interval`` that ``others`` (disjoint) cover."""
    start, end = interval
    return sum(max(0, min(end, till) - max(start, since)) for since, till in others)


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


def union(spans: pl.DataFrame) -> pl.DataFrame:
    """Disjoint spans in order that cover the same time; for each ``tid`` apart if there is one."""
    by = ["tid"] if "tid" in spans.columns else []
    if spans.is_empty():
        return spans.select(*by, "start", "end")
    ordered = spans.filter(pl.col("end") > pl.col("start")).sort(*by, "start")
    reach = pl.col("end").cum_max()
    new = pl.col("start") > (reach.over(by) if by else reach).shift(1)
    if by:
        new |= pl.col("tid").ne_missing(pl.col("tid").shift(1))
    numbered = ordered.with_columns(number=new.fill_null(True).cum_sum())
    merged = numbered.group_by(*by, "number", maintain_order=True)
    return merged.agg(pl.col("start").first(), pl.col("end").max()).drop("number")


def inside(points: pl.DataFrame, spans: pl.DataFrame) -> pl.Series:
    """Whether each ``start`` of ``points`` (in order) lies in a span of the same ``tid``."""
    covered = union(spans).sort("start").rename({"end": "until"})
    if covered.is_empty():
        return pl.repeat(False, points.height, eager=True).alias("start")
    found = points.select("tid", "start").join_asof(
        covered, on="start", by="tid", check_sortedness=False, coalesce=True
    )
    return (found["start"] < found["until"]).fill_null(False)


def covered_before(spans: pl.DataFrame, times: pl.Series) -> pl.Series:
    """Time that ``spans`` (disjoint, in order) cover before each of ``times``."""
    if spans.is_empty():
        return pl.zeros(times.len(), dtype=times.dtype, eager=True)
    begun = spans["start"].search_sorted(times, side="right").cast(pl.Int64)
    last = (begun - 1).clip(lower_bound=0)
    lengths = spans["end"] - spans["start"]
    found = pl.DataFrame(
        {
            "before": (lengths.cum_sum() - lengths).gather(last),
            "length": lengths.gather(last),
            "open": (times - spans["start"].gather(last)).clip(lower_bound=0),
        }
    )
    covered = pl.col("before") + pl.min_horizontal("open", "length")
    return found.select(covered=covered)["covered"]
