"""The marks of torch.compile and of the collector on the host, and what they add up to."""

from __future__ import annotations

import polars as pl

from traceview.derive.intervals import inside, union
from traceview.derive.windows import Window
from traceview.torchtext import marks


def overhead_category(name: str) -> str:
    """Which part of a compiled call's cost a mark of torch.compile's stands for."""
    return f"overhead_{marks.part_of_call(name) or 'runtime_wrappers'}"


def marks_ns(window: Window, *names: str, column: str = "duration_ns") -> int:
    """Host time of the marks of these names inside the steps."""
    return int(window.ops_in_steps.filter(pl.col("name").is_in(names))[column].sum())


def gaps(window: Window) -> pl.DataFrame | None:
    """Spans (``tid``, ``start``, ``end``) of the host between compiled parts of one region call.

    A gap goes from the end of what a compiled graph's call does to the next look-up in the same
    call: what runs there is the code of a graph break. (The region after a break may lie inside
    the one before it, so the regions' own marks do not show it.) None if no call is marked, or no
    graph: below 2.9 torch marks only those with a backward (``CompiledFunction``), and
    ``CompiledFxGraph.__call__`` (torch/_inductor/output_code.py) marks nothing.
    """
    steps = window.ops_in_steps.select("tid", "name", "start_ns", "duration_ns", "op_id")
    steps = steps.sort("start_ns")
    ours = (pl.col("name").str.starts_with(mark) for mark in marks.OUR_REGIONS)
    calls = steps.filter(pl.any_horizontal(ours))
    if calls.is_empty():
        return None
    end = pl.col("start_ns") + pl.col("duration_ns")
    calls = calls.select("tid", "start_ns", call="op_id", until=end)
    graph = (pl.col("name") == marks.FORWARD) | pl.col("name").str.starts_with(marks.GRAPH)
    lookup = pl.col("name") == marks.LOOKUP
    found = steps.filter(lookup | graph | pl.col("name").is_in([marks.PREGRAPH, marks.PROLOGUE]))
    found = found.select("tid", "start_ns", end=end, graph=graph, lookup=lookup)
    found = found.join_asof(calls, on="start_ns", by="tid", check_sortedness=False)
    found = found.filter(pl.col("start_ns") < pl.col("until"))
    if found["lookup"].any() and not found["graph"].any():
        return None
    of_call = ["tid", "call"]
    before = found.with_columns(
        reach=pl.col("end").cum_max().shift(1).over(of_call),
        graphs=pl.when("graph").then("end").cum_max().forward_fill().shift(1).over(of_call),
    )
    entered = pl.col("lookup") & (pl.col("start_ns") > pl.col("reach"))
    return before.filter(entered & (pl.col("graphs") == pl.col("reach"))).select(
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
