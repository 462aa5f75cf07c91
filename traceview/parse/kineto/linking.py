"""Raw frames to the tables kernels, kernel_launches and cpu_ops: who launched what, in which step.

A device execution and the call that launched it share a ``correlation``, whatever the call is
named; all kernels of a cudagraph replay share that of one ``cudaGraphLaunch``. (The trace's own
``ac2g`` flows are incomplete and are not read.)
"""

from __future__ import annotations

import re

import polars as pl

from traceview.parse.kineto.categories import categorize, cpu_category
from traceview.parse.kineto.nesting import nest
from traceview.parse.kineto.reader import RawFrames
from traceview.parse.kineto.steps import step_marks, with_step

_CALLS = (
    (re.compile(r"GraphLaunch"), "graph_launch"),
    (re.compile(r"Synchronize"), "sync"),
    (re.compile(r"Launch(?!HostFunc)"), "launch"),
    (re.compile(r"Malloc|Free|Alloc|MemCreate|MemMap|MemUnmap"), "alloc"),
    (re.compile(r"Memcpy|Memset"), "copy"),
)
_WORKLESS = ("other", "mark", "overhead")


def link(raw: RawFrames) -> dict[str, pl.DataFrame]:
    """Tables kernels, kernel_launches and cpu_ops of one window, without pass, rank and stance."""
    host = nest(raw.host)
    host = with_step(host, step_marks(host), "start_ns")
    is_call = pl.col("kind") == "call"
    ops = _operators(host.filter(~is_call))
    identity = ops.select(
        pl.col("row").alias("op_row"), "op_id", pl.col("name").alias("cpu_op_name")
    )
    calls = host.filter(is_call).join(identity, left_on="cpu_op", right_on="op_row", how="left")
    kernels = _kernels(raw.device, calls, ops, step_marks(host))
    return {
        "kernels": kernels,
        "kernel_launches": _launches(calls, kernels),
        "cpu_ops": _as_table(ops),
    }


def call_kind(name: str) -> str:
    """Kind of a CUDA runtime or driver call, as in table ``kernel_launches``."""
    return next((kind for pattern, kind in _CALLS if pattern.search(name)), "other")


def _operators(host: pl.DataFrame) -> pl.DataFrame:
    """Operators and marks with ``op_id``, ``parent_id``, ``self_ns`` and their category."""
    ops = host.with_columns(op_id=pl.int_range(pl.len(), dtype=pl.Int64))
    ids = ops.select(pl.col("row").alias("parent"), pl.col("op_id").alias("parent_id"))
    ops = ops.join(ids, on="parent", how="left", maintain_order="left")
    names = ops.select("name", "kind").unique()
    named = [cpu_category(name, kind) for name, kind in names.iter_rows()]
    ops = ops.join(
        names.with_columns(category=pl.Series(named, dtype=pl.String)),
        on=["name", "kind"],
        maintain_order="left",
        how="left",
    )
    inside = ops.filter(pl.col("parent_id").is_not_null()).group_by("parent_id")
    children = inside.agg(
        pl.col("duration_ns").sum().alias("children_ns"), pl.col("category").unique().alias("below")
    )
    ops = ops.join(
        children, left_on="op_id", right_on="parent_id", how="left", maintain_order="left"
    )
    self_ns = pl.col("duration_ns") - pl.col("children_ns").fill_null(0)
    # aten::linear that calls aten::addmm only hands on: the work, and the count, are the callee's.
    delegates = pl.col("below").list.contains(pl.col("category")).fill_null(False)
    works = ~pl.col("category").is_in(_WORKLESS)
    return ops.with_columns(
        self_ns=self_ns.clip(lower_bound=0),
        category=pl.when(delegates & works).then(pl.lit("other")).otherwise(pl.col("category")),
    )


def _kernels(
    device: pl.DataFrame, calls: pl.DataFrame, ops: pl.DataFrame, marks: pl.DataFrame
) -> pl.DataFrame:
    numbered = calls.filter(pl.col("correlation").is_not_null())
    launcher = numbered.unique("correlation", keep="first", maintain_order=True).select(
        "correlation", "step", "graph_key", "compile_id", "region",
        pl.col("name").alias("launch_name"), pl.col("start_ns").alias("launch_start_ns"),
        pl.col("duration_ns").alias("launch_duration_ns"),
        pl.col("op_id").alias("cpu_op_id"), pl.col("cpu_op_name").alias("cpu_op"),
    )  # fmt: skip
    linked = device.join(launcher, on="correlation", how="left", maintain_order="left")
    unlinked = with_step(linked.drop("step"), marks, "start_ns")["step"].alias("own_step")
    linked = _by_external_id(linked, ops).with_columns(
        step=pl.when(pl.col("launch_name").is_null()).then(unlinked).otherwise(pl.col("step")),
        in_cudagraph=pl.col("launch_name").str.contains("GraphLaunch").fill_null(False),
    )
    keys = linked.select("name", "cpu_op", "kind").unique()
    named = [categorize(*key) for key in keys.iter_rows()]
    keys = keys.with_columns(category=pl.Series(named, dtype=pl.String))
    linked = linked.join(keys, on=["name", "cpu_op", "kind"], how="left", nulls_equal=True)
    return linked.drop("external_id", "tid").sort("start_ns")


def _by_external_id(kernels: pl.DataFrame, ops: pl.DataFrame) -> pl.DataFrame:
    """The operator by its External id where no operator stands around the launch."""
    numbered = ops.filter((pl.col("kind") == "cpu_op") & pl.col("external_id").is_not_null())
    external = numbered.unique("external_id", keep="last", maintain_order=True).select(
        "external_id", pl.col("op_id").alias("x_id"), pl.col("name").alias("x_op"),
        *(pl.col(c).alias(f"x_{c}") for c in ("region", "graph_key", "compile_id")),
    )  # fmt: skip
    joined = kernels.join(external, on="external_id", how="left", maintain_order="left")
    return joined.with_columns(
        pl.coalesce("cpu_op_id", "x_id").alias("cpu_op_id"),
        pl.coalesce("cpu_op", "x_op").alias("cpu_op"),
        *(pl.coalesce(c, f"x_{c}").alias(c) for c in ("region", "graph_key", "compile_id")),
    ).drop("x_id", "x_op", "x_region", "x_graph_key", "x_compile_id")


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


def _as_table(ops: pl.DataFrame) -> pl.DataFrame:
    return ops.select(
        "step", "op_id", "parent_id", "depth", "name", "kind", "category", "tid", "start_ns",
        "duration_ns", "self_ns", "external_id", "sequence", "input_dims", "input_types",
        "graph_key", "compile_id", "kernel_file", "region",
    )  # fmt: skip
