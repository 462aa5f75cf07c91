"""Table ``region_costs``: what each region costs in a step, and what its compiles took.

A step's part is measured by our own marks around the region's outermost calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from traceview.derive.compile_costs import region_compiles
from traceview.derive.time.host import covered_ns
from traceview.derive.windows import Window
from traceview.tables import Tables, from_rows
from traceview.torchtext.marks import OUR_REGIONS

Row = dict[str, Any]
_STANCES = ("eager", "compiled")


def region_costs(tables: Tables, found: Sequence[Window]) -> pl.DataFrame:
    """Table ``region_costs``: every region; ``found`` are the profiler windows."""
    compiled = region_compiles(tables) if tables.has("compiles") else None
    stepped = [window for window in found if window.steps and window.stance in _STANCES]
    # Host time of the marked steps: unlike the span without the device's lag.
    profiled = [(window, covered_ns(window.marks)) for window in stepped]
    rows = []
    for region in tables["regions"].iter_rows(named=True):
        row = {key: region[key] for key in ("pass", "rank", "pid", "region_id", "name", "calls")}
        if profiled and _was_profiled(tables, region):
            row |= _of_a_step(region, profiled)
        if compiled is not None:
            at = (region["pass"], region["pid"], region["region_id"])
            row["compile_s"], row["compiles"] = compiled.get(at, (0.0, 0))
        rows.append(row)
    return from_rows("region_costs", rows)


def _was_profiled(tables: Tables, region: Row) -> bool:
    """Whether the region's process made a window, as far as that is recorded."""
    kept = tables["profile_windows"].filter(
        pl.col("pass").eq(region["pass"]),
        pl.col("file").is_not_null(),
        pl.col("rank").eq_missing(pl.lit(region["rank"], dtype=pl.Int32)),
    )
    return kept.is_empty() or region["pid"] in kept["pid"]


def _of_a_step(region: Row, profiled: Sequence[tuple[Window, int]]) -> Row:
    """The profiler's columns of a region, by windows and the host time of their steps, ns."""
    row: Row = {}
    names = [f"{mark}{region['region_id']}" for mark in OUR_REGIONS]
    for window, host_ns in profiled:
        if (window.pass_name, window.rank) != (region["pass"], region["rank"]):
            continue
        marks = window.ops.filter(pl.col("name").is_in(names) & pl.col("step").is_not_null())
        ns = covered_ns(marks)
        row[f"{window.stance}_ms"] = window.ms_per_step(ns)
        if window.stance == "compiled":
            row["calls_per_step"] = window.per_step(marks.height)
            row["share"] = min(1.0, ns / host_ns) if host_ns else None
    return row
