"""Table ``host_operands``: tensors on the CPU that compiled code hands to operators on a GPU.

ATen indexes a tensor on a GPU with one on the CPU without a word: it copies the index first, in
every call, and waits for that. Inductor has no code for operands on two devices, so it calls the
same operator. What is read here is the profile, whose copies lie in operators that are no copies,
and Dynamo's graph, which names the inputs on the CPU that are read at the same line.
"""

from __future__ import annotations

import re
from typing import Any

import polars as pl

from traceview.derive import causes
from traceview.derive.facts.promotions import source_of
from traceview.tables import Tables, from_rows, having
from traceview.torchtext.fx import Graph, Node, read_graph

#: Operators that are called to copy.
_COPIES = ("aten._to_copy", "aten.copy", "aten.copy_", "aten.clone", "prims.device_put")
_CAST = "prims.convert_element_type"
_TO_DEVICE, _BETWEEN = "HtoD", "HtoD|DtoH"
_WINDOW = ("pass", "rank")
_NAME = re.compile(r"[A-Za-z_]\w*")


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
            graph = read_graph(traced["text"] or "")
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


def host_input(graph: Graph, node: Node) -> Node | None:
    """The input on the CPU that ``node`` is, or is made of there; None: it is on a device."""
    while not node.meta or node.meta.endswith("cpu"):
        if not node.args:
            return None if "[][]" in node.meta else node  # a number needs no copy
        if not node.inputs:
            return None
        node = graph.nodes[node.inputs[0]]
    return None
