"""kernel_limits: every kernel (on a CPU: operator) of a window at every shape.

An operator that launches several kernels has its work once: they stand in one row, named after the
longest of them, as their shares of it are not known.

Kernels of a cudagraph's replay share one ``correlation`` and have no operator of their own; they
belong to calls of the generated code by order and name. Generated ones are named as their call is;
where the names of all of them agree with the code's, the library kernels between two of them belong
to the library calls between these two.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import msgspec
import polars as pl

from traceview.derive.limits.generated import (
    GeneratedCode,
    common_work,
    kernel_work,
    site_tensors,
    site_work,
)
from traceview.derive.limits.operators import operator_work
from traceview.derive.limits.work import (
    EXACT,
    HOST_COPY,
    INPUTS,
    Tensor,
    TensorList,
    Work,
    read_inputs,
)
from traceview.derive.windows import GENERATED, Window
from traceview.torchtext.output_code import PROFILED_CPP, Function, Site

Row = dict[str, Any]
_OPERATOR = ("cpu_op", "graph_key", "compile_id", "site", *INPUTS)
_KEY = ("name", "category", "kind", "bytes", *_OPERATOR)
_MOST_SITES = 1 << 20


def kernel_work_rows(window: Window, code: GeneratedCode, known: pl.DataFrame) -> list[Row]:
    """Rows of ``kernel_limits`` for one window without its limits, slowest first.

    None without marked steps.

    ``known`` are the compile ids of graph keys, as ``compile_ids(tables)`` gives them.
    """
    if not window.steps:
        return []
    # Kernels, on a CPU operators, with their time and the inputs of their operator.
    if window.on_device:
        inputs = window.ops.select(*INPUTS, cpu_op_id="op_id")
        kernels = window.main_kernels.with_columns(ns="duration_ns")
        frame = kernels.join(inputs, on="cpu_op_id", how="left", maintain_order="left")
    else:
        frame = window.working_operators.with_columns(
            ns="self_ns",
            cpu_op="name",
            cpu_op_id="op_id",
            kind=pl.lit("kernel"),
            bytes=pl.lit(None, dtype=pl.Int64),
            in_cudagraph=pl.lit(False),
            correlation=pl.lit(None, dtype=pl.Int64),
        )
    key = ["pass", "rank", "graph_key"]
    frame = frame.join(known, on=key, how="left", nulls_equal=True, maintain_order="left")
    compile_id = pl.when(GENERATED).then(pl.coalesce("compile_id", "known_compile_id"))
    frame = frame.with_columns(compile_id.alias("compile_id"))
    column, sites = replayed_sites(frame, code)
    frame = frame.with_columns(column)
    keys = frame.select(_KEY).unique(maintain_order=True).with_row_index("key")
    kinds = [execution(row, window.pass_name, code, sites) for row in keys.iter_rows(named=True)]
    # A number for every operator at one shape whose kernels stand together.
    numbers: dict[tuple[object, ...], int] = {}
    shapes = zip(keys.select(_OPERATOR).iter_rows(), kinds, strict=True)
    operators = [
        numbers.setdefault(shape, len(numbers)) if kind.operator else None for shape, kind in shapes
    ]
    keys = keys.with_columns(pl.Series("operator", operators, dtype=pl.Int32))
    frame = frame.join(keys, on=_KEY, how="left", nulls_equal=True, maintain_order="left")
    # Groups that differ in nothing a row shows are one.
    found: dict[tuple[object, ...], Row] = {}
    for group in _groups(frame, keys):
        same = (group["name"], group["category"], group["compile_id"], kinds[group["key"]])
        have = found.setdefault(same, {**group, "times": 0, "ns": 0, "kernels": 0})
        for total in ("times", "ns", "kernels"):
            have[total] += group[total]
    rows = [_row(window, group, kinds[group["key"]]) for group in found.values()]
    return sorted(rows, key=lambda row: -row["ms"])


def _groups(frame: pl.DataFrame, keys: pl.DataFrame) -> Iterator[Row]:
    """``key`` with its names, ``times``, ``ns`` and ``kernels`` of every group."""
    named = keys.select("key", "name", "category", "compile_id")
    of_key = frame.group_by("key", "operator", maintain_order=True).agg(
        pl.len().alias("kernels"), pl.col("ns").sum()
    )
    alone = of_key.filter(pl.col("operator").is_null()).with_columns(times="kernels")
    # In a replay one call is one site of one launch; below 0 it is no operator's number.
    replayed = -(pl.col("correlation") * _MOST_SITES + pl.col("site"))
    served = frame.filter(pl.col("operator").is_not_null())
    calls = served.group_by("operator").agg(times=pl.coalesce(replayed, "cpu_op_id").n_unique())
    longest_first = of_key.filter(pl.col("operator").is_not_null()).sort("ns", descending=True)
    together = (
        longest_first.group_by("operator", maintain_order=True)
        .agg(pl.col("key").first(), pl.col("kernels").sum(), pl.col("ns").sum())
        .join(calls, on="operator", maintain_order="left")
    )
    for groups in (alone, together):
        yield from groups.join(named, on="key", maintain_order="left").iter_rows(named=True)


def _row(window: Window, group: Row, kind: Execution) -> Row:
    work = kind.work
    return {
        **window.head,
        **{name: group[name] for name in ("name", "category", "compile_id")},
        "shapes": kind.shapes,
        "dtype": work and work.dtype,
        "count": window.per_step(group["times"]) or 0.0,
        "kernels": group["kernels"] / group["times"],
        "ms": window.ms_per_step(group["ns"]) or 0.0,
        "clock": window.clock,
        "bytes": work and work.bytes,
        "bytes_kind": work and work.bytes_kind,
        "bytes_from": kind.origin if work and work.bytes is not None else None,
        "flops": work and work.flops,
        "flops_kind": work.flops_kind if work and work.flops is not None else None,
        "flops_from": kind.origin if work and work.flops is not None else None,
    }


_MOST_SHAPES = 8


class Execution(msgspec.Struct, frozen=True):
    """What is known of a kernel at one shape.

    ``origin`` as in ``bytes_from``; ``operator``: the work is that of all kernels of its operator.
    """

    work: Work | None = None
    origin: str | None = None
    shapes: str | None = None
    operator: bool = False


def execution(row: Row, pass_name: str, code: GeneratedCode, sites: Sequence[Site]) -> Execution:
    """The execution of ``row``: a kernel's columns, its operator's inputs, its site."""
    if row["kind"] != "kernel":
        if row["bytes"] is None or row["bytes"] < 0:
            return Execution()
        # A copy inside the device reads and writes there; one to or from the host does one of both.
        inside = row["kind"] == "memcpy" and "DtoD" in row["name"]
        work = Work(row["bytes"] * (2 if inside else 1), EXACT)
        return Execution(work, "copy" if inside or row["kind"] == "memset" else HOST_COPY)
    site = None if row["site"] is None else sites[row["site"]]
    inputs = read_inputs(*(row[column] for column in INPUTS))
    if not row["category"].startswith("generated_"):
        if site is not None:
            known = site_work(site, None)
            shapes = _shapes(site_tensors(site.arguments))
            return Execution(known, "generated_code", shapes, known is not None)
        if inputs is None or row["cpu_op"] is None:
            return Execution()
        known = operator_work(row["cpu_op"], inputs, row["name"])
        return Execution(known, "input_dims", _shapes(inputs.arguments), known is not None)
    name = re.sub(PROFILED_CPP, r"\1", row["name"])
    places = (row["graph_key"], row["compile_id"])
    source = code.source(pass_name, name, *places)
    if source is None:
        return Execution(shapes=_shapes(inputs.arguments) if inputs else None)
    # Tensors of the real launch; none where they are not those that the source names.
    launched = [inputs.tensor(n) for n in range(len(inputs.arguments))] if inputs else []
    for pointer in source.pointers:
        tensor = launched[pointer.position] if pointer.position < len(launched) else None
        if tensor is None or pointer.dtype not in (None, tensor.dtype):
            launched = []
    if any(launched):
        return Execution(kernel_work(source, launched), "generated_code", _shapes(launched))
    called = [site] if site else code.sites(pass_name, name, *places)
    known = common_work(called, source) if called else kernel_work(source, [])
    shapes = _shapes(site_tensors(called[0].arguments)) if called and known else None
    return Execution(known, "generated_code", shapes)


def _shapes(arguments: Sequence[object]) -> str | None:
    """``float32[64, 512], bfloat16[512]``; of many only the first."""
    parts = []
    for argument in arguments:
        if isinstance(argument, Tensor):
            parts.append(f"{argument.dtype}{list(argument.dims)}")
        elif isinstance(argument, TensorList):
            parts.append(f"{len(argument.numels)} tensors")
    left_out = len(parts) - _MOST_SHAPES
    text = ", ".join(parts[:_MOST_SHAPES])
    return (text + f", {left_out} more" if left_out > 0 else text) or None


def replayed_sites(kernels: pl.DataFrame, code: GeneratedCode) -> tuple[pl.Series, list[Site]]:
    """Column ``site`` for ``kernels`` (rows as they are), numbers into the list of sites.

    ``kernels`` needs pass, graph_key, compile_id, correlation, name, kind, start_ns, in_cudagraph.
    """
    rows = kernels.with_row_index("row").filter(
        pl.col("in_cudagraph") & (pl.col("kind") == "kernel") & pl.col("correlation").is_not_null()
    )
    by_replay = rows.sort("start_ns").group_by("pass", "correlation", maintain_order=True)
    replays = by_replay.agg(
        pl.col("graph_key").first(), pl.col("compile_id").first(), pl.col("name"), pl.col("row")
    )
    sites: list[Site] = []
    known: dict[tuple[object, ...], list[int | None]] = {}
    column: list[int | None] = [None] * kernels.height
    for pass_name, _, graph_key, compile_id, names, numbers in replays.iter_rows():
        key = (pass_name, graph_key, compile_id, *names)
        if key not in known:
            # Numbers into ``sites``; kernels of one call share theirs.
            calls = aligned(names, code.functions(pass_name, graph_key, compile_id))
            at_site: dict[int, int] = {}
            for site in calls:
                if site is not None and id(site) not in at_site:
                    at_site[id(site)] = len(sites)
                    sites.append(site)
            known[key] = [None if site is None else at_site[id(site)] for site in calls]
        for row, number in zip(numbers, known[key], strict=True):
            column[row] = number
    return pl.Series("site", column, dtype=pl.Int32), sites


def aligned(names: Sequence[str], functions: Sequence[Function]) -> list[Site | None]:
    """The call of every kernel of one replay; None where order and names do not show it."""
    for function in functions:
        defined = [site.kernel for site in function.sites if not site.library]
        anchors = [n for n, name in enumerate(names) if name in set(defined)]
        if not defined or [names[n] for n in anchors] != defined:
            continue
        found: list[Site | None] = [None] * len(names)
        sites = function.sites
        places = [n for n, site in enumerate(sites) if not site.library]
        for at, place in zip(anchors, places, strict=True):
            found[at] = sites[place]
        bounds = zip(
            pairwise([-1, *anchors, len(names)]), pairwise([-1, *places, len(sites)]), strict=True
        )
        for (low, high), (first, last) in bounds:
            calls, kernels = sites[first + 1 : last], range(low + 1, high)
            if len(calls) == 1:
                calls = [calls[0]] * len(kernels)
            if len(calls) == len(kernels):
                found[low + 1 : high] = calls
        return found
    return [None] * len(names)
