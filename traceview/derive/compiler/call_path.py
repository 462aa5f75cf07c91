"""Table ``call_path``: from the user's call into the generated code, as the profiler saw it.

Every part is host time with the profiler's own cost in it. ``us_less_profiler`` takes off what the
events recorded inside a part cost; the part's own event is left in, so that it is an upper bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from traceview.derive.windows import Window
from traceview.tables import Tables
from traceview.torchtext.marks import FORWARD, LOOKUP, PREGRAPH, PROLOGUE, REGION, part_of_call

Row = dict[str, Any]
_WHOLE = (LOOKUP, PREGRAPH, PROLOGUE)


def call_path(tables: Tables, found: Sequence[Window]) -> list[Row]:
    """Rows of ``call_path`` for every compiled window with marked steps."""
    guards, entries = _look_ups(tables)
    costs = {
        (row["pass"], row["rank"]): row["event_cost_us"]
        for row in tables["step_counts"].iter_rows(named=True)
        if row["stance"] == "compiled"
    }
    cpp = (tables["generated_kernels"]["category"] == "cpp").any()
    rows: list[Row] = []
    for window in found:
        if window.stance != "compiled" or not window.steps:
            continue
        shown = window.ops["category"].str.starts_with("generated_").any()
        hidden = not window.on_device and bool(cpp) and not shown
        cost = costs.get((window.pass_name, window.rank))
        for part in _parts(window, hidden=hidden).iter_rows(named=True):
            calls, region = part["calls"] or 1, part["region"]
            micros = part["ns"] / 1e3 / calls
            less = None if cost is None else micros - cost * part["inner"] / calls
            count = entered = None
            if part["part"] == "cache_lookup":
                at, compile_id = (window.pass_name, window.rank), part["compile_id"]
                count = guards.get((*at, compile_id))
                entered = entries.get((*at, region, compile_id))
            row = {
                "pass": window.pass_name,
                "rank": window.rank,
                "region_id": int(region) if region and region.isdigit() else None,
                "compile_id": part["compile_id"],
                "part": part["part"],
                "calls": calls / window.steps,
                "us_per_call": micros,
                "ms": part["ns"] / 1e6 / window.steps,
                "us_less_profiler": less if less is not None and less >= 0 else None,
                "guards": count,
                "ns_per_guard": micros * 1e3 / count if count else None,
                "entries": entered,
            }
            rows.append(row)
    return rows


def _parts(window: Window, *, hidden: bool) -> pl.DataFrame:
    """Host ns and calls by region, compile id and part; ``inner`` are events inside."""
    steps = window.ops.filter(pl.col("step").is_not_null())
    children = steps.group_by("parent_id").agg(pl.len().alias("inner"))
    name = pl.col("name")
    overhead = steps.filter(pl.col("category") == "overhead")
    known = {mark: part_of_call(mark) or "runtime_wrappers" for mark in overhead["name"].unique()}
    part = name.replace_strict(known, default=None, return_dtype=pl.String)
    # A look-up belongs to the region it led to: the next mark on its thread, at its depth.
    following = [pl.col(column).shift(-1).over("tid") for column in ("name", "depth", "compile_id")]
    led = following[0].str.starts_with(REGION) & (following[1] == pl.col("depth"))
    entered = pl.when(name != LOOKUP).then("compile_id").when(led).then(following[2])
    parts = (
        overhead.sort("tid", "start_ns")
        .with_columns(part=part, compile_id=entered)
        .join(children, left_on="op_id", right_on="parent_id", how="left", maintain_order="left")
    )
    if hidden:  # the C++ kernels' time is part of the wrapper's here
        parts = parts.filter(pl.col("part") != "generated_wrapper")
    whole = name.is_in(_WHOLE)
    functions = name.str.starts_with(FORWARD)  # a training graph's wrappers: one call
    return parts.group_by("region", "compile_id", "part", maintain_order=True).agg(
        pl.when(whole).then(pl.col("duration_ns")).otherwise(pl.col("self_ns")).sum().alias("ns"),
        pl.when(functions.any()).then(functions.sum()).otherwise(pl.len()).alias("calls"),
        pl.when(whole).then(0).otherwise(pl.col("inner").fill_null(0)).sum().alias("inner"),
    )


def _look_ups(tables: Tables) -> tuple[dict[Any, int], dict[Any, int]]:
    """What a look-up goes through: guards and code variants.

    (pass, rank, compile id) → guards in the tree of the last compile of that id; (pass, rank,
    region, compile id) → code variants of the frame. A look-up that found nothing has no id and
    names no frame: it is given only where the region has no more than one.
    """
    in_tree = dict(tables["guards"].group_by("compile_key").len().iter_rows())
    guards: dict[Any, int] = {}
    variants: dict[Any, int] = {}
    compiles: dict[str, Row] = {}
    for row in tables["compiles"].sort("started_us", nulls_last=False).iter_rows(named=True):
        compiles[row["compile_key"]] = row
        if row["is_forward"] is False:
            continue
        if count := in_tree.get(row["compile_key"]) or row["guard_count"]:
            guards[row["pass"], row["rank"], row["compile_id"]] = count
        if row["outcome"] == "ok":
            frame = _frame(row)
            variants[frame] = variants.get(frame, 0) + 1
    entries: dict[Any, int] = {}
    in_region: dict[Any, set[Any]] = {}
    for row in tables["compile_regions"].iter_rows(named=True):
        compile_ = compiles[row["compile_key"]]
        frame = _frame(compile_)
        if frame in variants:
            pass_name, rank, region = row["pass"], compile_["rank"], str(row["region_id"])
            entries[pass_name, rank, region, compile_["compile_id"]] = variants[frame]
            in_region.setdefault((pass_name, rank, region), set()).add(frame)
    for (pass_name, rank, region), mine in in_region.items():
        if len(mine) == 1:
            entries[pass_name, rank, region, None] = variants[next(iter(mine))]
    return guards, entries


def _frame(compile_: Row) -> tuple[Any, ...]:
    return compile_["pass"], compile_["pid"], compile_["epoch"], compile_["frame_id"]
