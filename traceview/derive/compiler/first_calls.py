"""Table ``first_calls``: where the time of each region's first call went.

A phase of torch's belongs to a part of compiling by its name, else to its parent's part. Phases'
self times (``compile_phases.self_us``) are disjoint, so they add up. What lies between them is the
first run of what was compiled and Python around it; what lies before the first is not explained,
nor is what a phase without an end held.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from traceview.tables import Tables, grouped
from traceview.torchtext.phases import part_of
from traceview.words.names import PHASES

PARTS = tuple(PHASES)

Row = dict[str, Any]


def parts_of(phases: Iterable[Mapping[str, Any]]) -> dict[int, str | None]:
    """phase_id → part, parents before their children (``phases`` of one process in order)."""
    parts: dict[int, str | None] = {}
    for row in phases:
        inherited = parts.get(row["parent_id"])
        known = part_of(row["name"], inherited)
        # Autotuning compiles what it times: that is autotuning too.
        parts[row["phase_id"]] = inherited if inherited == "autotune" else known
    return parts


def outermost_autotuning(phases: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The outermost spans of autotuning; nothing waits for what runs in parallel."""
    parts = parts_of(phases)
    return [
        row
        for row in phases
        if parts[row["phase_id"]] == "autotune"
        and parts.get(row["parent_id"]) != "autotune"
        and not row["aside"]
    ]


def first_calls(tables: Tables) -> list[Row]:
    """Rows of ``first_calls``; none for a call in which nothing compiled."""
    compiling = tables["calls"].filter(
        (pl.col("call_index") == 0) & (pl.col("compiles_inside") > 0)
    )
    firsts = compiling.drop_nulls(["started_us", "host_ms"])
    timed = tables["compile_phases"].filter(pl.col("started_us").is_not_null())
    by_process = grouped(timed.sort("phase_id").iter_rows(named=True), "pass", "pid")
    recordings = tables["compile_intervals"].filter(pl.col("trigger") == "cudagraph_recording")
    rows: list[Row] = []
    for call in firsts.iter_rows(named=True):
        phases = by_process.get((call["pass"], call["pid"]), [])
        start = call["started_us"]
        end = start + call["host_ms"] * 1e3
        parts = parts_of(phases)
        backward: set[int] = set()
        for row in phases:
            if row["name"] == "entire_backward_compile" or row["parent_id"] in backward:
                backward.add(row["phase_id"])
        mine = [
            row
            for row in phases
            if start <= row["started_us"] <= end
            and row["duration_us"] is not None  # one that never ended is no evidence of its time
            and not row["aside"]
        ]
        if not mine:
            continue
        spent: dict[str, float] = defaultdict(float)
        for row in mine:
            part = "backward" if row["phase_id"] in backward else parts[row["phase_id"]]
            if row["self_us"] is not None:
                spent[part or "unexplained"] += row["self_us"]
        own = (pl.col("pass") == call["pass"]) & (pl.col("pid") == call["pid"])
        for row in recordings.filter(own).iter_rows(named=True):
            if start <= row["started_us"] and row["started_us"] + row["duration_ms"] * 1e3 <= end:
                spent["cudagraph_recording"] += row["duration_ms"] * 1e3
        spent["unexplained"] += max(0.0, min(row["started_us"] for row in mine) - start)
        spent["first_run"] = (end - start) - sum(spent.values())
        if spent["first_run"] < 0:  # more phases than time: their clock is not the call's
            spent["unexplained"] += spent.pop("first_run")
        base = {name: call[name] for name in ("pass", "rank", "pid", "region_id")}
        rows += [{**base, "part": part, "ms": spent[part] / 1e3} for part in PARTS if part in spent]
    return rows
