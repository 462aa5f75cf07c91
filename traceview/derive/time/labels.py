"""Stretches of the host line by cause: what a device waits for, what a host spends its step on."""

from __future__ import annotations

import polars as pl

from traceview.derive import causes
from traceview.derive.time import host
from traceview.derive.time.spans import inside
from traceview.derive.windows import Window

#: torch's mark around a loader's next batch.
DATA_LOADER = r"^enumerate\(DataLoader\)#"
#: Marks in which all has one cause, the strongest first: (pattern, for a device, for a host).
_WHOLE = (
    (r"^traceview own\b", causes.OWN, causes.OWN),
    (r"\(dynamo_timed\)$", causes.COMPILE, causes.HOST_COMPILE),
    (r"^traceview gc ", causes.GC, causes.HOST_GC),
    (DATA_LOADER, causes.DATA_LOADING, causes.HOST_DATA_LOADING),
)
_OPTIMIZER = r"^Optimizer\."
#: Calls that return when the device has done all of its work, beside those that say so.
_HOLDING = ("cudaFree", "cudaFreeHost", "cudaHostAlloc", "cudaMemcpy", "cuMemFree")
_PYTHON = pl.col("call").is_null() & (pl.col("op").is_null() | (pl.col("category") == "mark"))
_GRAPH = pl.col("name").str.starts_with(host.GRAPH).fill_null(False)
#: Where the user's code runs: a region goes on around the code of a graph break.
_PLAIN = _PYTHON | (pl.col("call").is_null() & pl.col("name").str.starts_with(host.REGION))


def device_causes(line: pl.DataFrame, window: Window) -> pl.DataFrame:
    """``line`` with ``cause``: a category of idle time if a device waits meanwhile.

    ``waits``: the host is held by a call until the device has done something.
    """
    line = _called(line, window).with_columns(stretch=_PYTHON.rle_id())
    lasts = (pl.col("end") - pl.col("start")).sum().over("stretch")
    in_break = pl.Series(host.break_marks(line, window))
    overhead = pl.col("category") == "overhead"
    own = (
        pl.when(pl.col("call_kind") == "sync").then(pl.lit(causes.SYNC))
        .when(pl.col("call_kind") == "alloc").then(pl.lit(causes.ALLOCATOR))
        .when(pl.col("copied").str.contains("Pageable -> Device")).then(pl.lit(causes.COPY_WAIT))
        .when(pl.col("copied").str.contains("Device -> Pageable")).then(pl.lit(causes.SYNC))
        .when(pl.col("name") == host.LOOKUP).then(pl.lit(causes.GUARDS))
        .when(_PLAIN & in_break).then(pl.lit(causes.GRAPH_BREAK))
        .when(overhead & ~_GRAPH).then(pl.lit(causes.CALL_OVERHEAD))
        .when(pl.col("category") == "communication").then(pl.lit(causes.COMMUNICATION))
        .when(_PYTHON & (lasts > causes.LONG_PYTHON_NS)).then(pl.lit(causes.OTHER_PYTHON))
        .otherwise(pl.lit(causes.LAUNCH_BOUND))
    )  # fmt: skip
    whole = _whole(line, window, 1)
    held = (pl.col("call_kind") == "sync") | pl.col("call_name").is_in(_HOLDING)
    held |= pl.col("copied").str.contains("Pageable") & (pl.col("copied_at") <= pl.col("end"))
    return line.with_columns(
        cause=pl.coalesce(whole, own), waits=held.fill_null(False)
    ).drop("stretch")  # fmt: skip


def host_causes(line: pl.DataFrame, window: Window, *, graphs_hold_kernels: bool) -> pl.DataFrame:
    """``line`` with ``cause``: a category of the host's time.

    ``graphs_hold_kernels``: the generated kernels were not recorded one by one
    (``enable_kernel_profile`` was off), so that their time is the generated wrapper's self time.
    """
    names = window.ops.filter(pl.col("category") == "overhead")["name"].unique().to_list()
    parts = {name: host.overhead_category(name) for name in names}
    part = pl.col("name").replace_strict(parts, default=None, return_dtype=pl.String)
    if graphs_hold_kernels:
        part = pl.when(_GRAPH).then(pl.lit("generated_other")).otherwise(part)
    in_break = pl.Series(host.break_marks(line, window))
    in_optimizer = pl.Series(_in_marks(line, window, _OPTIMIZER))
    own = (
        pl.when(_PLAIN & in_break).then(pl.lit(causes.HOST_GRAPH_BREAK))
        .when(pl.col("category") == "overhead").then(part)
        .when(_PYTHON & in_optimizer).then(pl.lit(causes.HOST_OPTIMIZER))
        .when(_PYTHON).then(pl.lit(causes.PYTHON))
        .otherwise("category")
    )  # fmt: skip
    line = line.with_columns(
        cause=pl.coalesce(_whole(line, window, 2), own), waits=False,
        call_name=pl.lit(None, dtype=pl.String),
    )  # fmt: skip
    return line.with_columns(pl.col("cause").fill_null("other"))


def _called(line: pl.DataFrame, window: Window) -> pl.DataFrame:
    """``line`` with the CUDA call's name and kind, and what it copied as the device says."""
    copies = window.kernels.filter(pl.col("kind") == "memcpy").unique("correlation").select(
        "correlation", copied="name", copied_at=pl.col("start_ns") + pl.col("duration_ns")
    )  # fmt: skip
    calls = window.launches.with_row_index("call").select(
        pl.col("call").cast(pl.Int64), "correlation", pl.col("name").alias("call_name"),
        pl.col("kind").alias("call_kind"),
    )  # fmt: skip
    calls = calls.join(copies, on="correlation", how="left").drop("correlation")
    return line.join(calls, on="call", how="left", maintain_order="left")


def _whole(line: pl.DataFrame, window: Window, column: int) -> pl.Expr:
    """The cause of the strongest mark around, null where none is."""
    found = (
        pl.when(pl.Series(_in_marks(line, window, row[0]))).then(pl.lit(row[column]))
        for row in _WHOLE
    )
    return pl.coalesce(_outside_steps(line, window), *found)


def _outside_steps(line: pl.DataFrame, window: Window) -> pl.Expr:
    """The collector's cause between the marks of steps, where it works, and in steps left out."""
    if not window.steps:
        return pl.lit(None, dtype=pl.String)
    steps = spans_of(window.marks).with_columns(tid=pl.lit(""))
    within = pl.Series(inside(line.select("start", tid=pl.lit("")), steps))
    # Ending the step's mark is the last that the collector does in a step.
    ours = pl.col("name").shift(1).str.contains(_WHOLE[0][0]).fill_null(False)
    short = pl.col("end") - pl.col("start") < causes.LONG_PYTHON_NS
    ending = pl.col("op").is_null() & ours & short & pl.col("end").is_in(steps["end"].implode())
    return pl.when(~within | ending).then(pl.lit(causes.OWN))


def _in_marks(line: pl.DataFrame, window: Window, pattern: str) -> pl.Series:
    marks = window.ops.filter(pl.col("name").str.contains(pattern))
    return inside(line, spans_of(marks))


def spans_of(frame: pl.DataFrame) -> pl.DataFrame:
    """``tid``, ``start`` and ``end`` of rows of a table."""
    ends = pl.col("start_ns") + pl.col("duration_ns")
    return frame.select("tid", start="start_ns", end=ends)
