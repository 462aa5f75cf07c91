"""Tables ``compile_regions`` and ``region_costs``: each torch.compile call's compiles and time.

A step's part is measured by our own marks around the region's outermost calls.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import polars as pl

from traceview.derive.compile_costs import ID, PROCESS, TIMES, exclusive_phases, with_nested
from traceview.derive.time.host import covered_ns
from traceview.derive.windows import Window
from traceview.tables import Tables, from_rows
from traceview.torchtext.marks import OUR_REGIONS

Row = dict[str, Any]
#: pass, pid, region_id
Region = tuple[str, int | None, int]
_STANCES = ("eager", "compiled")
_CODE = ("co_name", "co_filename", "co_firstlineno")


def compile_regions(tables: Tables) -> pl.DataFrame | None:
    """Each compile with its region: the innermost call it fell into, else that of its code.

    Single calls are not recorded in timed blocks. Code that only one region had compiled before
    is that one's again: the region's own function, what it calls and the rest of either after a
    graph break. A backward that is compiled outside every call belongs to its forward's region.
    """
    if not tables.has("compiles"):
        return None
    found: list[Row] = []
    if tables["regions"].is_empty() and tables["calls"].is_empty():
        return from_rows("compile_regions", found)
    # Calls in which something compiled, by process: (start, end, region_id) in µs.
    spans: dict[Any, list[tuple[float, float, int]]] = defaultdict(list)
    calls = tables["calls"].filter(pl.col("compiles_inside") > 0)
    for row in calls.drop_nulls(["started_us", "host_ms"]).iter_rows(named=True):
        start, end = row["started_us"], row["started_us"] + row["host_ms"] * 1e3
        spans[row["pass"], row["pid"]].append((start, end, row["region_id"]))
    code = {
        (row["pass"], row["pid"], row["target_file"], row["target_line"]): row["region_id"]
        for row in tables["regions"].iter_rows(named=True)
    }
    forward: dict[str, int] = {}
    before: dict[tuple[Any, ...], set[int]] = defaultdict(set)
    compiles = tables["compiles"].sort("started_us", nulls_last=True)
    for row in compiles.select(*PROCESS, *_CODE, *ID, "compile_id").iter_rows(named=True):
        process, at = (row["pass"], row["pid"]), row["started_us"]
        around = [] if at is None else [s for s in spans[process] if s[0] <= at <= s[1]]
        region = max(around)[2] if around else None
        if region is None:
            region = code.get((*process, row["co_filename"], row["co_firstlineno"]))
        if region is None:
            region = forward.get(row["compile_key"])
        earlier = before[tuple(row[name] for name in (*PROCESS, *_CODE))]
        if region is None and len(earlier) == 1:
            (region,) = earlier
        if region is not None:
            earlier.add(region)
            forward.setdefault(row["compile_key"], region)
            kept = {name: row[name] for name in (*PROCESS, *ID, "compile_id")}
            found.append({**kept, "region_id": region})
    return from_rows("compile_regions", found)


def region_costs(tables: Tables, found: Sequence[Window]) -> pl.DataFrame:
    """Table ``region_costs``: every region; ``found`` are the profiler windows."""
    compiled = region_compiles(tables) if tables.has("compiles") else None
    stepped = [window for window in found if window.steps and window.stance in _STANCES]
    # Host time of the marked steps: unlike the span without the device's lag.
    profiled = [(window, covered_ns(window.marks)) for window in stepped]
    rows = []
    for region in tables["regions"].iter_rows(named=True):
        row = {key: region[key] for key in ("pass", "rank", "pid", "region_id", "name", "calls")}
        # Whether the region's process made a window, as far as that is recorded.
        made = tables["profile_windows"].filter(
            pl.col("pass").eq(region["pass"]),
            pl.col("file").is_not_null(),
            pl.col("rank").eq_missing(pl.lit(region["rank"], dtype=pl.Int32)),
        )
        if profiled and (made.is_empty() or region["pid"] in made["pid"]):
            names = [f"{mark}{region['region_id']}" for mark in OUR_REGIONS]
            for window, host_ns in profiled:
                if (window.pass_name, window.rank) == (region["pass"], region["rank"]):
                    named = pl.col("name").is_in(names) & pl.col("step").is_not_null()
                    marks = window.ops.filter(named)
                    if marks.is_empty():
                        continue  # it was not called in these steps: its time is not known
                    ns = covered_ns(marks)
                    row[f"{window.stance}_ms"] = window.ms_per_step(ns)
                    if window.stance == "compiled":
                        row["calls_per_step"] = window.per_step(marks.height)
                        row["share"] = min(1.0, ns / host_ns) if host_ns else None
        if compiled is not None:
            at = (region["pass"], region["pid"], region["region_id"])
            row["compile_s"], row["compiles"] = compiled.get(at, (0.0, 0))
        rows.append(row)
    return from_rows("region_costs", rows)


def region_compiles(tables: Tables) -> dict[Region, tuple[float, int]]:
    """(pass, pid, region_id) → (seconds, compiles) of the compiles that belong to the region."""
    owners = tables["compile_regions"].select("pass", "pid", "region_id", *ID)
    compiles = with_nested(tables["compiles"].select(*PROCESS, *ID, *TIMES))
    times = compiles.select(*ID, *TIMES, "nested_us").unique(ID, keep="last")
    owned = owners.join(times, on=ID, nulls_equal=True, maintain_order="left")
    found: dict[Region, tuple[float, int]] = {}
    for row in owned.iter_rows(named=True):
        region = (row["pass"], row["pid"], row["region_id"])
        seconds, count = found.get(region, (0.0, 0))
        seconds += sum(exclusive_phases(row, row["nested_us"]).values())
        found[region] = (seconds, count + (row["is_forward"] is not False))
    return found
