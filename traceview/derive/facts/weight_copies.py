"""What is copied in every call: tables ``weight_copies`` and ``host_operands``.

Weights that generated code lays out or casts, and tensors on the CPU that operators on a GPU get.

On a CPU Inductor computes convolutions with channels last: a weight of another layout is copied
before each, by a generated kernel of its own or as part of one. Autocast has weights of another
dtype cast before each product, and a model whose weights are stored as whole numbers makes them
floats itself. What is read here is the generated code: a kernel that takes an
input of the graph and fills a buffer of the same sizes with other strides, which a convolution then
takes for its weight; or one that fills a buffer of another dtype with a parameter that the captured
graph casts.

ATen indexes a tensor on a GPU with one on the CPU without a word: it copies the index first, in
every call, and waits for that. Inductor has no code for operands on two devices, so it calls the
same operator. What is read is the profile, whose copies lie in operators that are no copies, and
Dynamo's graph, which names the inputs on the CPU that are read at the same line.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from math import prod
from typing import Any, NamedTuple

import polars as pl

from traceview.derive import causes
from traceview.derive.facts.promotions import source_of
from traceview.derive.facts.rows import ran_generated
from traceview.derive.facts.weight_work import (
    INFERRED,
    graphs_of_inference,
    is_parameter,
    is_written,
    kernels_of_inference,
    weights_of,
)
from traceview.derive.limits.generated import GeneratedCode
from traceview.tables import Tables, from_rows, having
from traceview.torchtext import fx
from traceview.torchtext.dtypes import is_integer, size_of
from traceview.torchtext.output_code import Buffer, Function

Row = dict[str, Any]
_CONVOLUTION = "extern_kernels.convolution"
_WEIGHT = 1  # its position among a convolution's arguments
LAYOUT, DTYPE = "layout", "dtype"
_CASTS = frozenset({"aten._to_copy", "prims.convert_element_type"})
#: Operators that are called to copy.
_COPIES = ("aten._to_copy", "aten.copy", "aten.copy_", "aten.clone", "prims.device_put")
_CAST = "prims.convert_element_type"
_TO_DEVICE, _BETWEEN = "HtoD", "HtoD|DtoH"
_WINDOW = ("pass", "rank")
_NAME = re.compile(r"[A-Za-z_]\w*")


class Copy(NamedTuple):
    """``part``: of all elements that the kernel's call touches, those of the weight, 0 to 1.

    ``dtype`` of the copy, and that of the weight, ``stored``.
    """

    bytes: int
    part: float
    dtype: str
    stored: str


def weight_copies(tables: Tables) -> pl.DataFrame | None:
    """Table ``weight_copies``; None where no step was profiled."""
    if (ran := ran_generated(tables)) is None:
        return None
    code, parameters = GeneratedCode(tables), _cast_parameters(tables)
    result = []
    for kernel, origin in kernels_of_inference(tables, ran):
        name = origin["kernel_name"]
        functions = code.functions(kernel["pass"], kernel["graph_key"], kernel["compile_id"])
        calls = sum(site.kernel == name for f in functions for site in f.sites)
        if not calls:
            continue
        why, copied = LAYOUT, []
        if kernel["clock"] == "host":
            copied = [found for f in functions for found in laid_out(f).get(name, ())]
        if not copied:
            weights = parameters.get(origin["compile_key"], frozenset())
            why, copied = DTYPE, [c for f in functions for c in cast(f, weights).get(name, ())]
        if not copied:
            continue
        # Sites differ in what else they do: by the part of what they touch that is the weight.
        share = sum(copy.part for copy in copied) / calls
        result.append(
            {
                **{key: kernel[key] for key in ("pass", "rank", "aot_id")},
                **{key: origin[key] for key in ("compile_key", "compile_id", "user_lines")},
                **{key: origin[key] for key in ("raw_file", "raw_line")},
                "kernel_name": name,
                "why": why,
                "weights": len(copied),
                "bytes": sum(copy.bytes for copy in copied),
                "dtype": max(copied).dtype,
                "stored": max(copied).stored,
                "count": kernel["count"],
                "profiled_ms": kernel["ms"],
                "share": share,
                "ms": share * kernel["ms"],
                "clock": kernel["clock"],
            }
        )
    return from_rows("weight_copies", result)


def laid_out(function: Function) -> dict[str, list[Copy]]:
    """Kernel → the weights of convolutions that it copies into another layout."""
    weights = {
        site.arguments[_WEIGHT].name
        for site in function.sites
        if site.kernel == _CONVOLUTION and len(site.arguments) > _WEIGHT
    }
    found: dict[str, list[Copy]] = defaultdict(list)
    for kernel, touched, total in _generated(function):
        inputs = [buffer for name, buffer, _ in touched if name in function.dtypes]
        for name, made, numel in touched:
            same = (b for b in inputs if b.dims == made.dims and b.strides != made.strides)
            if name in weights and numel and any(same):
                dtype = made.dtype or "float32"
                found[kernel].append(Copy(numel * size_of(dtype), 2 * numel / total, dtype, dtype))
    return found


def cast(function: Function, weights: frozenset[str]) -> dict[str, list[Copy]]:
    """Kernel → those of the inputs ``weights`` that it copies into another dtype."""
    found: dict[str, list[Copy]] = defaultdict(list)
    for kernel, touched, total in _generated(function):
        for name, weight, numel in touched:
            dtype = function.dtypes.get(name)
            made = (b.dtype for _, b, _ in touched if b.dims == weight.dims and b.dtype != dtype)
            if name in weights and numel and dtype and (other := next(filter(None, made), None)):
                found[kernel].append(Copy(numel * size_of(dtype), 2 * numel / total, other, dtype))
    return found


def _generated(function: Function) -> Iterator[tuple[str, list[tuple[str, Buffer, int]], int]]:
    """Calls of generated kernels: (kernel, [name, buffer, elements], elements in all)."""
    for site in function.sites:
        if not site.library:
            known = [(a.name, a.buffer) for a in site.arguments if a.name and a.buffer]
            touched = [(name, made, prod(size or 0 for size in made.dims)) for name, made in known]
            yield site.kernel, touched, sum(numel for *_, numel in touched)


def _cast_parameters(tables: Tables) -> dict[str, frozenset[str]]:
    """compile_key → the weights that its inference graph casts, by their names there.

    Of buffers only those of whole numbers, which are a weight as it is stored.
    """
    found: dict[str, frozenset[str]] = {}
    for key, graphs in graphs_of_inference(tables, INFERRED).items():
        captured = graphs[INFERRED]
        found[key] = frozenset(
            own.name
            for dynamos, own in weights_of(graphs, INFERRED)
            if is_parameter(dynamos)
            or (is_integer(own.dtype) and not is_written(captured, own.name))
            if any(captured.nodes[user].op in _CASTS for user in captured.users[own.name])
        )
    return found


def host_operands(tables: Tables) -> pl.DataFrame | None:
    """Table ``host_operands``; None where no graph or no step on a device was recorded."""
    compiled = pl.col("stance") == "compiled"
    on_device = compiled & (pl.col("clock") == "device")
    matched = tables["matched_kernels"].filter(on_device, pl.col("compile_id").is_not_null())
    if matched.is_empty() or not tables.has("graphs"):
        return None
    is_wait = pl.col("category").is_in((causes.COPY_WAIT, causes.SYNC))
    waits = tables["account_details"].filter(on_device, is_wait, "in_graph")
    graphs = tables["graphs"].filter(kind="dynamo_output")
    copies = matched.filter(pl.col("name").str.contains(_BETWEEN))
    place = (*_WINDOW, "compile_id", "op", "file", "line")
    mine = (
        copies.with_columns(op=pl.col("ops").list.last())
        .drop_nulls("op")
        .filter(pl.col("name").str.contains(_TO_DEVICE), ~pl.col("op").is_in((*_COPIES, _CAST)))
        .group_by(place, maintain_order=True)
        .agg(pl.col("count").sum(), copy_ms=pl.col("ms").sum())
    )
    result: list[dict[str, Any]] = []
    for row in mine.iter_rows(named=True):
        window = {"pass": row["pass"], "rank": row["rank"]}
        part = row["count"] / float(having(copies, **window)["count"].sum())
        wait_ms = part * float(having(waits, **window)["ms"].sum())
        at = f"{row['file']}:{row['line']}"
        sources: dict[str, None] = {}
        for traced in having(graphs, compile_id=row["compile_id"], **window).to_dicts():
            graph = fx.read_graph(traced["text"] or "")
            for node in graph.operations:
                if node.user_line != at or node.meta.endswith("cpu"):
                    continue
                # An index in brackets is no input of the node.
                for name in (each for each in _NAME.findall(node.args) if each in graph.nodes):
                    if (root := host_input(graph, graph.nodes[name])) is not None:
                        sources[source_of(tables, traced, root)] = None
        result.append({**row, "sources": list(sources), "wait_ms": wait_ms})
    result.sort(key=lambda row: -(row["copy_ms"] + row["wait_ms"]))
    return from_rows("host_operands", result)


def host_input(graph: fx.Graph, node: fx.Node) -> fx.Node | None:
    """The input on the CPU that ``node`` is, or is made of there; None: it is on a device."""
    while not node.meta or node.meta.endswith("cpu"):
        if not node.args:
            return None if "[][]" in node.meta else node  # a number needs no copy
        if not node.inputs:
            return None
        node = graph.nodes[node.inputs[0]]
    return None
