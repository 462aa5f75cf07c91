"""Kernels (on a CPU: operators) by name, the generated ones with what was fused into them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import prod
from typing import Any

import polars as pl

from traceview.derive.windows import GENERATED, Window
from traceview.tables import Tables
from traceview.torchtext.output_code import PROFILED_CPP

Row = dict[str, Any]

_MOST_COMMON = pl.col("cpu_op").drop_nulls().mode(maintain_order=True).first()
#: What is known of executions on a device alone.
_OF_DEVICE = {
    "cpu_op": pl.String,
    "grid": pl.String,
    "block": pl.String,
    "multiprocessors": pl.Int32,
}


class Origins:
    """What is known of generated kernels, by graph, compile or file with the name, and by name."""

    def __init__(self, tables: Tables) -> None:
        self._found: dict[tuple[str | None, str | None, str], Row] = {}
        for row in tables["generated_kernels"].iter_rows(named=True):
            name, pass_name = row["kernel_name"], row["pass"]
            for place in (row["graph_key"], row["compile_id"], row["kernel_path"], None):
                self._found.setdefault((pass_name, place, name), row)

    def of(self, pass_name: str, name: str, *places: str | None) -> Row | None:
        """The row of ``generated_kernels``: the first of ``places`` that knows it, else by name."""
        keys = [(pass_name, place, name) for place in (*(p for p in places if p), None)]
        return next((self._found[key] for key in keys if key in self._found), None)

    def of_kernel(self, kernel: Row) -> Row | None:
        """The same of a row of ``matched_kernels``."""
        name = re.sub(PROFILED_CPP, r"\1", kernel["name"])
        return self.of(kernel["pass"], name, kernel["graph_key"], kernel["compile_id"])


def compile_ids(tables: Tables) -> pl.DataFrame:
    """``pass``, ``rank``, ``graph_key`` → ``known_compile_id``, where one compile alone has it."""
    generated = tables["generated_kernels"].select("pass", "rank", "graph_key", "compile_id")
    events = tables["cache_events"].select("pass", "rank", "compile_id", graph_key="key")
    known = pl.concat([generated, events.select(generated.columns)])
    known = known.drop_nulls(["graph_key", "compile_id"])
    groups = known.group_by("pass", "rank", "graph_key").agg(ids=pl.col("compile_id").unique())
    found = groups.filter(pl.col("ids").list.len() == 1)
    return found.select("pass", "rank", "graph_key", known_compile_id=pl.col("ids").list.first())


def kernel_groups(window: Window, origins: Origins, known: pl.DataFrame) -> list[Row]:
    """Rows of table ``kernel_groups`` for one window; without steps, only the totals are known."""
    frame = window.kernels if window.on_device else window.working_operators
    ns = "duration_ns" if window.on_device else "self_ns"
    if not window.on_device:
        frame = frame.with_columns(pl.lit(None, t).alias(name) for name, t in _OF_DEVICE.items())
    frame = frame.select(
        "pass", "rank", "name", "category", "graph_key", "compile_id", ns, *_OF_DEVICE
    )
    frame = frame.join(known, on=["pass", "rank", "graph_key"], how="left", nulls_equal=True)
    frame = frame.with_columns(
        pl.when(GENERATED).then(pl.coalesce("compile_id", "known_compile_id")).alias("compile_id"),
        pl.when(GENERATED).then("graph_key").alias("graph_key"),
        pl.col("name").str.replace(PROFILED_CPP, "${1}").alias("plain"),
    )
    total = int(frame[ns].sum()) or 1
    groups = frame.group_by("name", "plain", "category", "compile_id", maintain_order=True).agg(
        pl.len().alias("times"),
        pl.col(ns).sum().alias("ns"),
        _MOST_COMMON.alias("cpu_op"),
        pl.col("graph_key").first(),
        pl.col("grid", "block").unique(),
        pl.col("multiprocessors").first(),
    )
    rows = []
    for group in groups.iter_rows(named=True):
        origin: Row | None = None
        if group["category"].startswith("generated_"):
            places = (group["graph_key"], group["compile_id"])
            origin = origins.of(window.pass_name, group["plain"], *places)
        rows.append(
            {
                **window.head,
                "name": group["name"],
                "category": group["category"],
                "count": window.per_step(group["times"]),
                "ms": window.ms_per_step(group["ns"]),
                "total_count": group["times"],
                "total_ms": group["ns"] / 1e6,
                "share": group["ns"] / total,
                "clock": window.clock,
                "cpu_op": group["cpu_op"],
                "programs": _most(group["grid"]),
                "threads": _most(group["block"]),
                "multiprocessors": group["multiprocessors"],
                "compile_id": group["compile_id"] or (origin and origin["compile_id"]),
                "fused_ops": origin and origin["fused_ops"],
                "user_lines": origin and origin["user_lines"],
            }
        )
    return rows


def _most(sizes: Iterable[str | None]) -> int | None:
    """The largest of ``sizes``, as ``[4, 1, 1]``; None where none is known."""
    known = [prod(map(int, found)) for size in sizes if (found := re.findall(r"\d+", size or ""))]
    return max(known, default=None)
