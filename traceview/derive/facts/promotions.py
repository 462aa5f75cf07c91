"""Table ``promotions``: functions whose work is in float64 because one of its tensors is.

Read is Dynamo's graph, whose names are those of the user's values: an operation takes float64 next
to a narrower float and gives float64. What the user casts (``x.double()``) is no promotion, nor is
a number or a tensor without dimensions, which changes no dtype.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

import polars as pl

from traceview.derive.kernel_groups import Origins
from traceview.derive.windows import GENERATED
from traceview.tables import Tables, from_rows
from traceview.torchtext.frames import resumed
from traceview.torchtext.fx import Graph, Node, read_graph
from traceview.torchtext.kernel_source import uses_float64

Row = dict[str, Any]
Function = tuple[str | None, Any]  # file, and name or first line
_WIDE = "float64"
_NARROW = frozenset({"float32", "float16", "bfloat16"})
_SCALAR = re.compile(r"\w\[\]")
_NO_WORD = re.compile(r"[^A-Za-z0-9]+")


def promotions(tables: Tables) -> pl.DataFrame | None:
    """Table ``promotions``: one row per function; None where no graph was recorded."""
    if not tables.has("graphs"):
        return None
    keys = ("pass", "rank", "compile_key", "compile_id")
    graphs = tables["graphs"].filter(
        pl.col("kind") == "dynamo_output", pl.col("text").str.contains('"f64[', literal=True)
    )
    compiles = {row["compile_key"]: row for row in tables["compiles"].iter_rows(named=True)}
    origins, written = Origins(tables), dict[str, Function]()
    begins = defaultdict[Function, set[int]](set)
    for code in compiles.values():
        begins[code["co_filename"], code["co_name"]].add(code["co_firstlineno"] or 0)
    for key, code in compiles.items():
        file, line = code["co_filename"], code["co_firstlineno"]
        if rest := resumed(code["co_name"]):  # of the function that begins last before the break
            before = (each for each in begins[file, rest.function] if each <= rest.line)
            line = max(before, default=None)
        written[key] = file, line
    found: dict[tuple[Any, ...], Row] = {}
    for row in graphs.sort("attempt").iter_rows(named=True):
        code = compiles.get(row["compile_key"], {})
        place = (code.get("co_filename"), code.get("co_firstlineno"))
        function = (row["pass"], row["rank"], *place)
        graph = read_graph(row["text"])
        roots, wide = promoted(graph)
        if function in found or not roots:
            continue
        # ms of a compiled step in its generated kernels that compute in float64
        here = (pl.col("pass") == row["pass"]) & (pl.col("stance") == "compiled")
        returned = any(graph.base(name)[0] in wide for name in graph.outputs)
        ran = tables["matched_kernels"].filter(GENERATED, here)
        ms = 0.0
        for kernel in ran.iter_rows(named=True):
            origin = origins.of_kernel(kernel)
            own = (origin or {}).get("compile_key") or ""
            same = written.get(own) == place
            same &= returned or not resumed(compiles.get(own, {}).get("co_name"))
            if origin and same and uses_float64(origin["source_code"] or ""):
                ms += kernel["ms"] or 0.0
        read = next((at for name in roots if (at := _read_at(graph, name))), None)
        file, _, line = (read or "").rpartition(":")
        found[function] = {
            **{key: row[key] for key in (*keys, "raw_file", "raw_line")},
            "sources": [source_of(tables, row, graph.nodes[name]) for name in roots],
            "file": file or None,
            "line": int(line) if file else None,
            "operations": len(wide),
            "returned": returned,
            **({} if ran.is_empty() else {"ms": ms, "clock": ran["clock"][0]}),
        }
    return from_rows("promotions", found.values())


def promoted(graph: Graph) -> tuple[list[str], set[str]]:
    """(what is float64 by itself and makes other results float64, those results)."""
    roots: dict[str, str] = {}  # name → the value that it is made of alone
    narrow: set[str] = set()
    wide: set[str] = set()
    found: dict[str, None] = {}
    for node in graph.nodes.values():
        dtype = node.dtype
        if node.args and not node.target and len(node.inputs) == 1:  # another name
            for names in (narrow, wide):
                names.update({node.name} if node.inputs[0] in names else ())
            if node.inputs[0] in roots:
                roots[node.name] = roots[node.inputs[0]]
        elif dtype in _NARROW and not _SCALAR.search(node.meta):
            narrow.add(node.name)
        elif dtype == _WIDE and not _SCALAR.search(node.meta):
            sources = dict.fromkeys(roots[name] for name in node.inputs if name in roots)
            mixed = not narrow.isdisjoint(node.inputs)
            if not wide.isdisjoint(node.inputs) or (mixed and sources):
                wide.add(node.name)
                found.update(sources)
            elif not mixed:  # else the user's own cast
                roots[node.name] = next(iter(sources), node.name)
    return list(found), wide


def _read_at(graph: Graph, name: str) -> str | None:
    """``file:line`` where it is made; of an input, where it is read first."""
    node = graph.nodes[name]
    if node.user_line:
        return node.user_line
    for user in graph.users[name]:
        if found := graph.nodes[user].user_line or _read_at(graph, user):
            return found
    return None


def source_of(tables: Tables, row: Row, node: Node) -> str:
    """What the user calls it: the source of an input's guard; of others the operator."""
    if node.args:
        return node.word or node.name
    guards = tables["guards"].filter(compile_key=row["compile_key"])["source_name"]
    names = (name for name in guards.unique(maintain_order=True).drop_nulls())
    wanted = _NO_WORD.sub("_", node.name).strip("_")
    same = (name for name in names if _NO_WORD.sub("_", name).strip("_") == wanted)
    return next(same, node.name)
