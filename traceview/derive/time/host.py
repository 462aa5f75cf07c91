"""The marks of torch.compile and of the collector on the host, and what they add up to."""

from __future__ import annotations

import polars as pl

from traceview.derive.intervals import inside, union
from traceview.derive.windows import Window
from traceview.torchtext.marks import (
    BACKWARD,
    FORWARD,
    GRAPH,
    LOOKUP,
    OUR_REGIONS,
    PREGRAPH,
    PROLOGUE,
    REGION,
    part_of_call,
)


def overhead_category(name: str) -> str:
    """Which part of a compiled call's cost a mark of torch.compile's stands for."""
    return f"overhead_{part_of_call(name) or 'runtime_wrappers'}"


def call_overhead_ns(window: Window) -> int:
    """Look-up, pre-graph bytecode, prologue and the compiled function's own work, host."""
    steps = window.ops_in_steps
    whole = steps.filter(pl.col("name").is_in([LOOKUP, PREGRAPH, PROLOGUE]))["duration_ns"].sum()
    return int(whole) + int(
        steps.filter(pl.col("name").is_in([FORWARD, BACKWARD]))["self_ns"].sum()
    )


def lookup_ns(window: Window) -> int:
    """``TorchDynamo Cache Lookup``: evaluating guards, host."""
    return int(window.ops_in_steps.filter(pl.col("name") == LOOKUP)["duration_ns"].sum())


def compiled_regions(window: Window) -> int:
    """``Torch-Compiled Region`` marks inside the steps."""
    return window.ops_in_steps.filter(pl.col("name").str.starts_with(REGION)).height


def gaps(window: Window) -> pl.DataFrame | None:
    """Spans (``tid``, ``start``, ``end``) of the host between compiled parts of one region call.

    A gap goes from the end of what a compiled graph's call does to the next look-up in the same
    call: what runs there is the code of a graph break. (The region after a break may lie inside
    the one before it, so the regions' own marks do not show it.) None if no call is marked, or no
    graph: below 2.9 torch marks only those with a backward (``CompiledFunction``), and
    ``CompiledFxGraph.__call__`` (torch/_inductor/output_code.py) marks nothing.
    """
    steps = window.ops_in_steps.sort("start_ns")
    ours = (pl.col("name").str.starts_with(mark) for mark in OUR_REGIONS)
    calls = steps.filter(pl.any_horizontal(ours))
    if calls.is_empty():
        return None
    end = pl.col("start_ns") + pl.col("duration_ns")
    calls = calls.select("tid", "start_ns", call="op_id", until=end)
    graph = (pl.col("name") == FORWARD) | pl.col("name").str.starts_with(GRAPH)
    lookup = pl.col("name") == LOOKUP
    marks = steps.filter(lookup | graph | pl.col("name").is_in([PREGRAPH, PROLOGUE]))
    marks = marks.select("tid", "start_ns", end=end, graph=graph, lookup=lookup)
    marks = marks.join_asof(calls, on="start_ns", by="tid", check_sortedness=False)
    marks = marks.filter(pl.col("start_ns") < pl.col("until"))
    if marks["lookup"].any() and not marks["graph"].any():
        return None
    of_call = ["tid", "call"]
    before = marks.with_columns(
        reach=pl.col("end").cum_max().shift(1).over(of_call),
        graphs=pl.when("graph").then("end").cum_max().forward_fill().shift(1).over(of_call),
    )
    found = pl.col("lookup") & (pl.col("start_ns") > pl.col("reach"))
    return before.filter(found & (pl.col("graphs") == pl.col("reach"))).select(
        "tid", start="reach", end="start_ns"
    )


def in_breaks(line: pl.DataFrame, window: Window) -> pl.Series:
    """Whether each stretch of ``line`` begins in a gap between compiled parts."""
    found = gaps(window)
    empty = pl.DataFrame(schema={"tid": pl.String, "start": pl.Int64, "end": pl.Int64})
    return inside(line, empty if found is None else found)


def spans_of(frame: pl.DataFrame) -> pl.DataFrame:
    """``tid``, ``start`` and ``end`` of rows of a table."""
    ends = pl.col("start_ns") + pl.col("duration_ns")
    return frame.select("tid", start="start_ns", end=ends)


def covered_ns(frame: pl.DataFrame) -> int:
    """Host time that the rows of ``frame`` cover, nested ones counted once for each thread."""
    covered = union(spans_of(frame))
    return int((covered["end"] - covered["start"]).sum())
