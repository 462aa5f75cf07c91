"""Table ``launch_sources``: what the launches of compiled steps are for, where it is one thing.

A step that waits for launches can't be shortened by shorter kernels, only by fewer launches, or by
a host that is not held between them. Three things make many, or hold it:

- an operator of a library that launches kernels for each matrix or part (``linalg_qr``);
- equal work on several tensors, none of which needs another's result: Inductor fuses what reads
  from each other, so each has kernels of its own;
- a value that compiled code itself reads from the device: the predicate of ``torch.cond``, and
  ``.item()`` where it is captured. The host then waits for all that was launched before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import polars as pl

from traceview.derive.effects.graphs import LOWERED
from traceview.derive.windows import GENERATED
from traceview.tables import Tables, from_rows, having
from traceview.torchtext.fx import Graph, read_graph

Row = dict[str, Any]
_RUN = ("pass", "rank")
#: Less of the launches is not what a step waits for.
LEAST_SHARE = 0.5
#: Fewer tensors are not worth being one.
_LEAST_EQUAL = 8
#: Operators of a graph that read a value on the host, and what a user calls them.
_READS = {"higher_order.cond": "torch.cond", "aten._local_scalar_dense": ".item()"}


def launch_sources(tables: Tables) -> pl.DataFrame | None:
    """Table ``launch_sources``; None where no step was profiled."""
    ran = tables["matched_kernels"].filter(stance="compiled", clock="device")
    if tables["matched_kernels"].is_empty():
        return None
    graphs = tables["graphs"].filter(kind=LOWERED)
    found: list[Row] = []
    for key, kernels in ran.partition_by(_RUN, as_dict=True, maintain_order=True).items():
        run = dict(zip(_RUN, key, strict=True))
        mine = [read_graph(text) for text in having(graphs, **run)["text"].drop_nulls()]
        rows = [*_operators(kernels), *_equal(kernels, mine), *_reads(tables, run, mine)]
        found += [{**run, **row} for row in rows]
    return from_rows("launch_sources", found)


def _operators(kernels: pl.DataFrame) -> Iterator[Row]:
    """Library operators that launch most of all kernels."""
    library = kernels.filter(pl.col("cpu_op").str.contains("::"))
    yield from ({"kind": "operator", **row} for row in _most(library, kernels, "cpu_op"))


def _equal(kernels: pl.DataFrame, graphs: list[Graph]) -> Iterator[Row]:
    """Lines whose generated kernels do the same to several tensors, apart from each other."""
    generated = kernels.filter(GENERATED, pl.col("file").is_not_null())
    for row in _most(generated, kernels, "category"):
        line = f"{row['file']}:{row['line']}"
        times = max((equal_work(graph, line) for graph in graphs), default=0)
        if times >= max(_LEAST_EQUAL, LEAST_SHARE * row["count"]):
            yield {"kind": "equal", **row, "name": f"{times}"}


def _reads(tables: Tables, run: Row, graphs: list[Graph]) -> Iterator[Row]:
    """Lines whose values compiled code reads on the host, in each step."""
    calls = having(tables["kernel_launches"], **run).filter(
        pl.col("step").is_not_null(), pl.col("graph_key").is_not_null(), stance="compiled"
    )
    steps = calls["step"].n_unique()
    waits = calls.filter(kind="sync").height
    if not steps or waits < steps:
        return
    lines = Counter[tuple[str, str]]()
    for graph in graphs:
        for node in graph.operations:
            if node.op in _READS and node.user_line:
                lines[_READS[node.op], node.user_line] += 1
    for (name, line), _ in lines.most_common(1):
        file, _, number = line.rpartition(":")
        count = waits / steps
        yield {"kind": "read", "name": name, "file": file, "line": int(number), "count": count}


def _most(some: pl.DataFrame, kernels: pl.DataFrame, name: str) -> Iterator[Row]:
    """The line of ``some`` that launches most of all kernels, and what it launches."""
    by_line = some.group_by("file", "line", name=name, maintain_order=True)
    counts = by_line.agg(pl.col("count").sum())
    shares = counts.with_columns(share=pl.col("count") / kernels["count"].sum())
    yield from shares.filter(pl.col("share") >= LEAST_SHARE).iter_rows(named=True)


def equal_work(graph: Graph, line: str) -> int:
    """How often the operator that ``line`` has most is there; 0 if one needs another's result."""
    here = [node for node in graph.operations if node.user_line == line and not node.is_view]
    if not here:
        return 0
    (op, times), *_ = Counter(node.op for node in here).most_common(1)
    depth: dict[str, int] = {}
    for node in graph.operations:
        above = max((depth.get(name, 0) for name in node.inputs), default=0)
        depth[node.name] = above + (node.op == op and node.user_line == line)
    return times if max(depth[node.name] for node in here) == 1 else 0
