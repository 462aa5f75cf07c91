"""Spans of time in frames: columns ``start`` and ``end``, ns; ``tid`` where threads matter."""

from __future__ import annotations

import polars as pl


def union(spans: pl.DataFrame) -> pl.DataFrame:
    """Disjoint spans in order that cover the same time; for each ``tid`` apart if there is one."""
    by = ["tid"] if "tid" in spans.columns else []
    ordered = spans.filter(pl.col("end") > pl.col("start")).sort(*by, "start")
    reach = pl.col("end").cum_max()
    reach = reach.over(by) if by else reach
    new = pl.col("start") > reach.shift(1)
    if by:
        new |= pl.col("tid") != pl.col("tid").shift(1)
    return (
        ordered.with_columns(number=new.fill_null(True).cum_sum())
        .group_by(*by, "number", maintain_order=True)
        .agg(pl.col("start").first(), pl.col("end").max()).drop("number")
    )  # fmt: skip


def inside(points: pl.DataFrame, spans: pl.DataFrame) -> pl.Series:
    """Whether each ``start`` of ``points`` (in order) lies in a span of the same ``tid``."""
    covered = union(spans).sort("start").rename({"end": "until"})
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
    length = spans["end"] - spans["start"]
    frame = pl.DataFrame({
        "before": (length.cum_sum() - length).gather(last),
        "length": length.gather(last),
        "open": (times - spans["start"].gather(last)).clip(lower_bound=0),
    })  # fmt: skip
    covered = pl.col("before") + pl.min_horizontal("open", "length")
    return frame.select(covered=covered)["covered"]
