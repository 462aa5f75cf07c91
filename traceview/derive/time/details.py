"""Table ``account_details``: the calls, operators, kernels and lines behind each category."""

from __future__ import annotations

import polars as pl

from traceview.derive import causes
from traceview.derive.time.accounting import Account
from traceview.derive.time.host_line import first_case
from traceview.derive.time.lines import graph_lines, mark_lines, python_lines
from traceview.derive.windows import Window
from traceview.tables import Tables, from_rows
from traceview.torchtext import marks

_PLACE = ("file", "line")
_KEY = ("category", "what", *_PLACE, "in_graph")
TO_DEVICE, TO_HOST = "copy to the device", "copy to the host"
_DIRECTIONS = {
    "HtoD": TO_DEVICE,
    "DtoH": TO_HOST,
    "DtoD": "copy on the device",
}
#: The collector's own marks, and the wrapper of generated code: what runs there is Python.
_PLAIN = marks.starting(marks.OURS, marks.GRAPH, marks.PROFILER)
#: Categories whose stretches are named after the call that holds the host.
_CALLS = (causes.SYNC, causes.ALLOCATOR, causes.COPY_WAIT)
_GC = (causes.GC, causes.HOST_GC)


def account_details(tables: Tables, window: Window, account: Account) -> pl.DataFrame:
    """Rows of one window; each category's rows add up to it."""
    sources, line_ops = (window.own(tables[name]) for name in ("op_sources", "line_ops"))
    places = sources.select(pl.col("op_id").alias("op"), "file", "line").unique("op")
    python = python_lines(account.line, sources, line_ops)
    in_graphs = graph_lines(tables, window, places)
    parts = [_stretches(account, places, python, mark_lines(line_ops), in_graphs)]
    if account.busy:
        parts.append(_kernels(window, account, places, in_graphs))
    # How often is not known of a group of which some was not counted.
    counted = pl.when(pl.col("count").null_count() == 0).then(pl.col("count").sum())
    groups = pl.concat(parts).group_by(_KEY, maintain_order=True)
    found = groups.agg(pl.col("ns", "profiled").sum(), count=counted)
    rows = (
        {
            **window.head,
            **{key: row[key] for key in _KEY},
            "clock": window.clock,
            "ms": window.ms_per_step(row["ns"]),
            "profiled_ms": window.ms_per_step(row["profiled"]),
            "count": None if row["count"] is None else window.per_step(row["count"]),
        }
        for row in found.sort("ns", descending=True).iter_rows(named=True)
    )
    return from_rows("account_details", rows)


def _stretches(
    account: Account,
    places: pl.DataFrame,
    python: pl.DataFrame,
    by_mark: pl.DataFrame,
    in_graphs: pl.DataFrame,
) -> pl.DataFrame:
    """What the host did, by call or operator or as Python, at the user's line.

    ``places`` by operator, ``python`` by stretch, ``by_mark`` by the name of their marks,
    ``in_graphs`` by operator, for what holds the host. Stretches of one operator or call count
    once, and so does Python, whatever marks cut it. What is no stretch of the host is a sum over
    the window: how often is not counted.
    """
    line = account.line.select("row", "name", "op", "call", "call_name", "run")
    rows = (
        account.rows.join(line, on="row", how="left", maintain_order="left")
        .join(places, on="op", how="left")
        .join(python, on="row", how="left", suffix="_python")
        .join(by_mark, on="name", how="left", suffix="_mark")
        .join(in_graphs, on="op", how="left", suffix="_graph")
    )
    plain = pl.col("name").is_null() | pl.col("name").str.contains(_PLAIN)
    plain |= pl.col("name").str.starts_with(marks.REGION)
    elsewhere = pl.col("row").is_null()
    held = pl.col("cause").is_in(_CALLS)
    searching = pl.col("cause") == causes.SEARCH
    cases: tuple[tuple[pl.Expr, pl.Expr | str], ...] = (
        (pl.col("arriving"), "launch latency"),
        (elsewhere, "device"),
        (held, pl.col("call_name")),
        (plain & pl.col("cause").is_in(_GC), "garbage collection"),
        (plain & pl.col("call_name").is_null(), "Python"),
    )
    what = pl.coalesce(first_case(cases), "name", "call_name")
    marked = pl.col("cause").is_in(_GC) & pl.col("file_mark").is_not_null()
    seen = pl.when(plain & pl.col("file_python").is_not_null() & ~marked)
    place = (
        seen.then(f"{key}_python")
        .otherwise(pl.coalesce(key, f"{key}_mark", pl.when(held | searching).then(f"{key}_graph")))
        .alias(key)
        for key in _PLACE
    )
    found = rows.select(
        pl.col("cause").alias("category"),
        what.alias("what"),
        *place,
        pl.col("in_graph").fill_null(False),
        "ns",
        "profiled",
        counted=~elsewhere & ~pl.col("arriving"),
        event=pl.when(plain & pl.col("call_name").is_null())
        .then("run")
        .when(searching)
        .then("op")
        .otherwise(pl.coalesce("call", "op")),
    )
    first = pl.struct(*_KEY, "event", "counted").is_first_distinct().cast(pl.Int32)
    return found.with_columns(count=pl.when("counted").then(first)).drop("event", "counted")


def _kernels(
    window: Window, account: Account, places: pl.DataFrame, in_graphs: pl.DataFrame
) -> pl.DataFrame:
    """Kernels by name (copies by direction) at the line of their operator.

    What a category has on the device goes to its kernels by their durations.
    """
    arrow = pl.col("name").str.extract(r"\b([HD]to[HD])\b")
    direction = arrow.replace_strict(_DIRECTIONS, default=None, return_dtype=pl.String)
    copied = pl.when(pl.col("kind") == "memcpy").then(direction)
    kernels = window.main_kernels.join(places, left_on="cpu_op_id", right_on="op", how="left").join(
        in_graphs, left_on="cpu_op_id", right_on="op", how="left", suffix="_graph"
    )
    moved = pl.when(direction.is_not_null())
    frame = kernels.select(
        "category",
        pl.coalesce(copied, "name").alias("what"),
        *(pl.coalesce(key, moved.then(f"{key}_graph")).alias(key) for key in _PLACE),
        pl.col("in_graph").fill_null(False),
        ns=pl.col("duration_ns").cast(pl.Float64),
        count=1,
    )
    as_timed, profiled = (
        pl.col("category").replace_strict(busy, return_dtype=pl.Float64)
        for busy in (account.busy_as_timed(), account.busy)
    )
    share = (pl.col("ns") / pl.col("ns").sum().over("category")).fill_nan(0.0)
    return frame.select(*_KEY, ns=share * as_timed, profiled=share * profiled, count="count")
