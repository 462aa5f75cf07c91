"""Table ``compile_regions``: which torch.compile call each compile belongs to."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import polars as pl

from traceview.tables import Tables, from_rows

#: Without the code object: hosts may have the same pids.
_PROCESS = ("pass", "rank", "pid")
_CODE = ("co_name", "co_filename", "co_firstlineno")
_ID = ("compile_key", "compile_id", "is_forward", "started_us")
#: Of the calls in which something compiled, per process: (start, end, region_id) in µs.
_Spans = dict[Any, list[tuple[float, float, int]]]


def compile_regions(tables: Tables) -> pl.DataFrame | None:
    """Each compile with its region: the innermost call it fell into, else that of its code.

    Single calls are not recorded in timed blocks. Code that only one region had compiled before
    is that one's again: the region's own function, what it calls and the rest of either after a
    graph break. A backward that is compiled outside every call belongs to its forward's region.
    """
    if not tables.has("compiles"):
        return None
    found: list[dict[str, Any]] = []
    if tables["regions"].is_empty() and tables["calls"].is_empty():
        return from_rows("compile_regions", found)
    spans = _call_spans(tables)
    code = {
        (row["pass"], row["pid"], row["target_file"], row["target_line"]): row["region_id"]
        for row in tables["regions"].iter_rows(named=True)
    }
    forward: dict[str, int] = {}
    before: dict[tuple[Any, ...], set[int]] = defaultdict(set)
    compiles = tables["compiles"].sort("started_us", nulls_last=True)
    for row in compiles.select(*_PROCESS, *_CODE, *_ID).iter_rows(named=True):
        process = (row["pass"], row["pid"])
        region = _innermost(spans.get(process, []), row["started_us"])
        if region is None:
            region = code.get((*process, row["co_filename"], row["co_firstlineno"]))
        if region is None:
            region = forward.get(row["compile_key"])
        earlier = before[tuple(row[name] for name in (*_PROCESS, *_CODE))]
        if region is None and len(earlier) == 1:
            (region,) = earlier
        if region is not None:
            earlier.add(region)
            forward.setdefault(row["compile_key"], region)
            found.append({name: row[name] for name in (*_PROCESS, *_ID)} | {"region_id": region})
    return from_rows("compile_regions", found)


def _call_spans(tables: Tables) -> _Spans:
    spans: _Spans = defaultdict(list)
    calls = tables["calls"].filter(pl.col("compiles_inside") > 0)
    for row in calls.drop_nulls(["started_us", "host_ms"]).iter_rows(named=True):
        start = row["started_us"]
        spans[row["pass"], row["pid"]].append(
            (start, start + row["host_ms"] * 1e3, row["region_id"])
        )
    return spans


def _innermost(spans: list[tuple[float, float, int]], at_us: float | None) -> int | None:
    """Region of the latest-started span that holds ``at_us``."""
    if at_us is None:
        return None
    holding = [span for span in spans if span[0] <= at_us <= span[1]]
    return max(holding)[2] if holding else None
