"""kernel_limits: every kernel (on a CPU: operator) of a window at every shape.

An operator that launches several kernels has its work once: they stand in one row, named after the
longest of them, as their shares of it are not known.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from traceview.derive.limits.ceilings import Ceilings, beside
from traceview.derive.limits.executions import Execution, execution
from traceview.derive.limits.generated import GeneratedCode
from traceview.derive.limits.replays import replayed_sites
from traceview.derive.windows import Window

Row = dict[str, Any]
_INPUTS = ("input_dims", "input_types", "input_strides", "concrete_inputs")
_OPERATOR = ("cpu_op", "graph_key", "compile_id", "site", *_INPUTS)
_KEY = ("name", "category", "kind", "bytes", *_OPERATOR)
_MOST_SITES = 1 << 20
_GENERATED = pl.col("category").str.starts_with("generated_")


def kernel_limits(
    window: Window, code: GeneratedCode, known: pl.DataFrame, ceilings: Ceilings
) -> list[Row]:
    """Rows of table ``kernel_limits`` for one window, dearest first; none without marked steps.

    ``known`` are the compile ids of graph keys, as ``compile_ids(tables)`` gives them.
    """
    if not window.steps:
        return []
    frame = _on_device(window) if window.on_device else _on_host(window)
    key = ["pass", "rank", "graph_key"]
    frame = frame.join(known, on=key, how="left", nulls_equal=True, maintain_order="left")
    compile_id = pl.when(_GENERATED).then(pl.coalesce("compile_id", "known_compile_id"))
    frame = frame.with_columns(compile_id.alias("compile_id"))
    column, sites = replayed_sites(frame, code.functions)
    frame = frame.with_columns(column)
    keys = frame.select(_KEY).unique(maintain_order=True).with_row_index("key")
    kinds = [execution(row, window.pass_name, code, sites) for row in keys.iter_rows(named=True)]
    keys = keys.with_columns(pl.Series("operator", _operators(keys, kinds), dtype=pl.Int32))
    frame = frame.join(keys, on=_KEY, how="left", nulls_equal=True, maintain_order="left")
    found = _summed(_groups(frame, keys), kinds)
    rows = [_row(window, group, kinds[group["key"]], ceilings) for group in found]
    return sorted(rows, key=lambda row: -row["ms"])


def _on_device(window: Window) -> pl.DataFrame:
    inputs = window.ops.select(pl.col("op_id").alias("cpu_op_id"), *_INPUTS)
    kernels = window.main_kernels.join(inputs, on="cpu_op_id", how="left", maintain_order="left")
    return kernels.with_columns(pl.col("duration_ns").alias("ns"))


def _on_host(window: Window) -> pl.DataFrame:
    return window.working_operators.with_columns(
        pl.col("self_ns").alias("ns"), pl.col("name").alias("cpu_op"), kind=pl.lit("kernel"),
        bytes=pl.lit(None, dtype=pl.Int64), in_cudagraph=pl.lit(False),
        correlation=pl.lit(None, dtype=pl.Int64), cpu_op_id=pl.col("op_id"),
    )  # fmt: skip


def _operators(keys: pl.DataFrame, kinds: list[Execution]) -> list[int | None]:
    """A number for every operator at one shape whose kernels stand together."""
    numbers: dict[tuple[object, ...], int] = {}
    shapes = keys.select(_OPERATOR).iter_rows()
    return [
        numbers.setdefault(shape, len(numbers)) if kind.operator else None
        for shape, kind in zip(shapes, kinds, strict=True)
    ]


def _groups(frame: pl.DataFrame, keys: pl.DataFrame) -> Iterator[Row]:
    """``key`` with its names, ``times``, ``ns`` and ``kernels`` of every group."""
    named = keys.select("key", "name", "category", "compile_id")
    of_key = frame.group_by("key", "operator", maintain_order=True).agg(
        pl.len().alias("kernels"), pl.col("ns").sum()
    )
    alone = of_key.filter(pl.col("operator").is_null()).with_columns(times="kernels")
    # In a replay one call is one site of one launch; below 0 it is no operator's number.
    replayed = -(pl.col("correlation") * _MOST_SITES + pl.col("site"))
    calls = frame.filter(pl.col("operator").is_not_null()).group_by("operator").agg(
        pl.coalesce(replayed, "cpu_op_id").n_unique().alias("times")
    )  # fmt: skip
    longest_first = of_key.filter(pl.col("operator").is_not_null()).sort("ns", descending=True)
    together = longest_first.group_by("operator", maintain_order=True).agg(
        pl.col("key").first(), pl.col("kernels").sum(), pl.col("ns").sum()
    ).join(calls, on="operator", maintain_order="left")  # fmt: skip
    for groups in (alone, together):
        yield from groups.join(named, on="key", maintain_order="left").iter_rows(named=True)


def _summed(groups: Iterator[Row], kinds: list[Execution]) -> list[Row]:
    """Groups that differ in nothing a row shows, as one."""
    found: dict[tuple[object, ...], Row] = {}
    for group in groups:
        same = (group["name"], group["category"], group["compile_id"], kinds[group["key"]])
        have = found.setdefault(same, {**group, "times": 0, "ns": 0, "kernels": 0})
        for column in ("times", "ns", "kernels"):
            have[column] += group[column]
    return list(found.values())


def _row(window: Window, group: Row, kind: Execution, ceilings: Ceilings) -> Row:
    work = kind.work
    count = window.per_step(group["times"]) or 0.0
    ms = window.ms_per_step(group["ns"]) or 0.0
    return {
        **window.head,
        **{name: group[name] for name in ("name", "category", "compile_id")},
        "shapes": kind.shapes,
        "dtype": work and work.dtype,
        "count": count,
        "kernels": group["kernels"] / group["times"],
        "ms": ms,
        "clock": window.clock,
        "bytes": work and work.bytes,
        "bytes_kind": work and work.bytes_kind,
        "bytes_from": kind.origin if work and work.bytes is not None else None,
        "flops": work and work.flops,
        "flops_from": kind.origin if work and work.flops is not None else None,
        **beside(work, count, ms, ceilings, fixed=kind.host),
    }
