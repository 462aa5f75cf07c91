"""Raw frames to the tables kernels, kernel_launches and cpu_ops: who launched what, in which step.

A device execution and the call that launched it share a ``correlation``, whatever the call is
named; all kernels of a cudagraph replay share that of one ``cudaGraphLaunch``. (The trace's own
``ac2g`` flows are incomplete and are not read.)
"""

from __future__ import annotations

import re
from collections.abc import Callable

import polars as pl

from traceview.parse.kineto.categories import categorize, cpu_category
from traceview.parse.kineto.columns import decoded
from traceview.parse.kineto.nesting import nest
from traceview.parse.kineto.reader import RawFrames
from traceview.parse.kineto.steps import step_marks, steps_of

_CALLS = (
    (re.compile(r"GraphLaunch"), "graph_launch"),
    (re.compile(r"Synchronize"), "sync"),
    (re.compile(r"Launch(?!HostFunc)"), "launch"),
    (re.compile(r"Malloc|Free|Alloc|MemCreate|MemMap|MemUnmap"), "alloc"),
    (re.compile(r"Memcpy|Memset"), "copy"),
)
_WORKLESS = ("other", "mark", "overhead")
_CONTEXT = ("region", "graph_key", "compile_id")


def link(raw: RawFrames) -> dict[str, pl.DataFrame]:
    """Tables kernels, kernel_launches and cpu_ops of one window, without pass, rank and stance."""
    host = nest(raw.host).drop("line")
    marks = step_marks(host)
    is_call = pl.col("kind") == "call"
    host = host.with_columns(steps_of(host["start_ns"], marks), op_id=(~is_call).cum_sum() - 1)
    host = host.with_columns(
        parent_id=pl.col("op_id").gather(pl.col("parent")),
        cpu_op_id=pl.col("op_id").gather(pl.col("cpu_op")),
        cpu_op=pl.col("name").gather(pl.col("cpu_op")),
    )
    calls = host.filter(is_call).select(
        "step", "name", "tid", "start_ns", "duration_ns", "correlation", "graph_key", "compile_id",
        "region", "cpu_op", "cpu_op_id",
    )  # fmt: skip
    ops = host.filter(~is_call).drop("parent", "cpu_op", "cpu_op_id", "correlation")
    del host
    kernels = _kernels(raw.device, calls, ops, marks)
    return {
        "kernels": kernels,
        "kernel_launches": _launches(calls, kernels),
        "cpu_ops": decoded(_operators(ops), raw.texts),
    }


def call_kind(name: str) -> str:
    """Kind of a CUDA runtime or driver call, as in table ``kernel_launches``."""
    return next((kind for pattern, kind in _CALLS if pattern.search(name)), "other")


def _operators(ops: pl.DataFrame) -> pl.DataFrame:
    """Table cpu_ops: operators and marks with ``self_ns`` and their category."""
    parents = pl.col("parent_id")
    work = ops.select("op_id", "parent_id", "duration_ns", _categories(ops, cpu_category))
    work = work.with_columns(
        handed_on=pl.col("category") == pl.col("category").gather(parents)
    )  # fmt: skip
    inside = work.filter(parents.is_not_null()).group_by("parent_id").agg(
        pl.col("duration_ns").sum().alias("children_ns"), pl.col("handed_on").any()
    )  # fmt: skip
    work = work.drop("handed_on").join(
        inside, left_on="op_id", right_on="parent_id", how="left", maintain_order="left"
    )
    self_ns = pl.col("duration_ns") - pl.col("children_ns").fill_null(0)
    # aten::linear that calls aten::addmm only hands on: the work, and the count, are the callee's.
    delegates = pl.col("handed_on").fill_null(False) & ~pl.col("category").is_in(_WORKLESS)
    own = work.select(
        self_ns.clip(lower_bound=0).alias("self_ns"),
        pl.when(delegates).then(pl.lit("other")).otherwise("category").alias("category"),
    )
    return ops.drop("forward_thread").with_columns(own)


def _categories(frame: pl.DataFrame, category: Callable[[str, str], str]) -> pl.Series:
    """``category`` of every row's name and kind, asked for once each."""
    names = frame.select("name", "kind")
    known = names.unique()
    named = [category(name, kind) for name, kind in known.iter_rows()]
    known = known.with_columns(category=pl.Series(named, dtype=pl.String))
    return names.join(known, on=["name", "kind"], how="left", maintain_order="left")["category"]


def _kernels(
    device: pl.DataFrame, calls: pl.DataFrame, ops: pl.DataFrame, marks: pl.DataFrame
) -> pl.DataFrame:
    numbered = calls.filter(pl.col("correlation").is_not_null()).drop("tid")
    launcher = numbered.unique("correlation", keep="first", maintain_order=True).rename(
        {name: f"launch_{name}" for name in ("name", "start_ns", "duration_ns")}
    )
    linked = device.join(launcher, on="correlation", how="left", maintain_order="left")
    linked = _by_external_id(linked, ops).with_columns(
        step=pl.when(pl.col("launch_name").is_null())
        .then(steps_of(linked["start_ns"], marks))
        .otherwise("step"),
        in_cudagraph=pl.col("launch_name").str.contains("GraphLaunch").fill_null(False),
    )
    known = ["name", "cpu_op", "kind", "launch_name"]
    keys = linked.select(known).unique()
    named = [categorize(*key) for key in keys.iter_rows()]
    keys = keys.with_columns(category=pl.Series(named, dtype=pl.String))
    linked = linked.join(keys, on=known, how="left", nulls_equal=True)
    return linked.drop("external_id", "tid").sort("start_ns")


def _by_external_id(kernels: pl.DataFrame, ops: pl.DataFrame) -> pl.DataFrame:
    """The operator by its External id where no operator stands around the launch."""
    lost = kernels.filter(pl.col("cpu_op_id").is_null())["external_id"].drop_nulls().unique()
    found = ops.lazy().filter(
        (pl.col("kind") == "cpu_op") & pl.col("external_id").is_in(lost.implode())
    )
    external = found.select(
        "external_id", pl.col("op_id").alias("x_cpu_op_id"), pl.col("name").alias("x_cpu_op"),
        *(pl.col(c).alias(f"x_{c}") for c in _CONTEXT),
    ).unique("external_id", keep="last", maintain_order=True)  # fmt: skip
    joined = kernels.lazy().join(external, on="external_id", how="left", maintain_order="left")
    filled = ("cpu_op_id", "cpu_op", *_CONTEXT)
    return (
        joined.with_columns(pl.coalesce(c, f"x_{c}").alias(c) for c in filled)
        .drop(f"x_{c}" for c in filled)
        .collect()
    )


def _launches(calls: pl.DataFrame, kernels: pl.DataFrame) -> pl.DataFrame:
    led_to = (
        kernels.filter(pl.col("correlation").is_not_null())
        .group_by("correlation")
        .agg(pl.len().cast(pl.Int32).alias("kernels"))
    )
    kinds = calls["name"].map_elements(call_kind, return_dtype=pl.String)
    joined = calls.with_columns(kind=kinds).join(
        led_to, on="correlation", how="left", maintain_order="left"
    )
    return joined.select(
        "step", "name", "kind", "tid", "start_ns", "duration_ns", "correlation",
        pl.col("kernels").fill_null(0), "graph_key", "compile_id",
    )  # fmt: skip
