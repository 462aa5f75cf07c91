"""What each region costs in a step, by our own marks around its outermost calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from traceview.derive.time.host import OUR_REGIONS, covered_ns
from traceview.derive.windows import Window
from traceview.tables import Tables

Row = dict[str, Any]


def region_costs(tables: Tables, found: Sequence[Window]) -> list[Row]:
    """The profiler's columns of table ``region_costs``, regions of the profiled processes."""
    rows = []
    for region in tables["regions"].iter_rows(named=True):
        mine = {
            window.stance: window
            for window in found
            if (window.pass_name, window.rank) == (region["pass"], region["rank"])
        }
        if mine and _was_profiled(tables, region):
            rows.append(_row(region, mine))
    return rows


def _was_profiled(tables: Tables, region: Row) -> bool:
    """Whether the region's process made a window, as far as that is recorded."""
    kept = tables["profile_windows"].filter(
        pl.col("pass").eq(region["pass"]) & pl.col("file").is_not_null()
        & pl.col("rank").eq_missing(pl.lit(region["rank"], dtype=pl.Int32))
    )  # fmt: skip
    return kept.is_empty() or region["pid"] in kept["pid"]


def _row(region: Row, mine: dict[str, Window]) -> Row:
    eager, compiled = (
        _marks(mine.get(stance), region["region_id"]) for stance in ("eager", "compiled")
    )
    row: Row = {key: region[key] for key in ("pass", "rank", "pid", "region_id", "name", "calls")}
    if eager is not None:
        row["eager_ms"] = mine["eager"].ms_per_step(covered_ns(eager))
    if compiled is not None:
        window, ns = mine["compiled"], covered_ns(compiled)
        row["compiled_ms"] = window.ms_per_step(ns)
        row["calls_per_step"] = window.per_step(compiled.height)
        host = _host_ns(window)
        row["share"] = min(1.0, ns / host) if host else None
    return row


def _marks(window: Window | None, region_id: int) -> pl.DataFrame | None:
    if window is None or not window.steps:
        return None
    named = pl.col("name").is_in([f"{mark}{region_id}" for mark in OUR_REGIONS])
    return window.ops.filter(named & pl.col("step").is_not_null())


def _host_ns(window: Window) -> int:
    """Host time of the marked steps: unlike the span without the device's lag."""
    return covered_ns(window.marks)
