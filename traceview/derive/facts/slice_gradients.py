"""Gradients of a tensor's slices, each of which is a tensor as large as the whole.

Table ``slice_gradients``: a tensor that is read slice by slice (``x[:, t]`` in a loop). In the
backward the gradient of each slice is a tensor of zeros as large as the whole, with that slice
written into it, and all are added. Generated code then goes through all slices at each element.
A kernel that stores no such tensor, but sums it up further, is left out: what takes its place has
to be stored and read again, which may take as long.

Where a compiled function gives the slices out, as views of one result, their backward runs in
eager, which makes those tensors and adds each.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from math import prod
from typing import Any, NamedTuple

import polars as pl

from traceview.derive.facts.partial_writes import (
    LEAST_WASTE,
    OF_ORIGIN,
    elements_of,
    part_of,
    with_changes,
)
from traceview.derive.facts.rows import ran_generated, timed_scales
from traceview.derive.origins.tree import nearest, parents
from traceview.tables import Tables, from_rows, grouped
from traceview.torchtext import marks
from traceview.torchtext.cpp_work import work_of
from traceview.torchtext.fx import Graph, Node, tensor_sizes
from traceview.torchtext.kernel_source import index_tests, read_kernel

Row = dict[str, Any]
#: Fewer slices, and kernels that test for fewer places, may be anything.
_LEAST_SLICES = 4
_ADD, _OF_SLICES = "aten.add", ("aten.select_scatter", "aten.slice_scatter")
_ZEROS = re.compile(r"^\(\[[^\]]{0,200}\], (?:0|0\.0|False)[,)]")
_DIM = re.compile(r"^\(\w+, \w+, (\d+)")
#: What autograd runs for such a slice outside of compiled code, and the operator in it.
_IN_EAGER = {"SelectBackward0": "aten::select_backward", "SliceBackward0": "aten::slice_backward"}
_RUN = ("pass", "rank")


class Slices(NamedTuple):
    """Gradients of ``slices`` of a tensor of ``elements``, each as large as that, which are added.

    ``needed``: elements of the slices together; ``dim``: the one that is sliced; ``single``: most
    slices are one place of it, else a range; ``lines`` of the user's own code, most slices first.
    """

    slices: int
    elements: int
    needed: int
    dim: int
    single: bool
    lines: tuple[str, ...]

    @property
    def wasted(self) -> float:
        """The share of what is gone through that need not be."""
        return 1 - self.needed / (self.slices * self.elements)


def slice_gradients(tables: Tables) -> pl.DataFrame | None:
    """Table ``slice_gradients``; None where no step was profiled."""
    if (ran := ran_generated(tables)) is None:
        return None
    scales = timed_scales(tables)
    result = []
    for kernel, origin, known in with_changes(tables, ran, added_slices):
        tests, lines = index_tests(origin["source_code"]), origin["user_lines"] or ()
        mine = [
            each
            for each in known
            if tests["==" if each.single else "<"] >= _LEAST_SLICES
            and (not lines or not each.lines or not set(lines).isdisjoint(each.lines))
        ]
        if not mine or not kernel["ms"]:
            continue
        largest = max(mine, key=lambda each: each.slices * each.elements)
        pointers = found.pointers if (found := read_kernel(origin["source_code"])) else ()
        written = (each.written.total or 0 for each in pointers if each.written)
        if all(total < largest.elements for total in written):
            continue
        share = 1.0
        if kernel["clock"] == "host":  # a C++ kernel may have other loops as well
            work = work_of(origin["source_code"])
            share = work.share_of_loops(largest.elements) if work else 0.0
        scale = scales.get((kernel["pass"], kernel["rank"]))
        ms = None if scale is None else kernel["ms"] * scale
        result.append(
            {
                **{name: kernel[name] for name in ("pass", "rank", "count", "clock")},
                **{name: origin[name] for name in (*OF_ORIGIN, "kernel_name")},
                **{
                    name: getattr(largest, name) for name in ("slices", "elements", "dim", "single")
                },
                "user_lines": list(dict.fromkeys(line for each in mine for line in each.lines)),
                "profiled_ms": kernel["ms"],
                "ms": ms,
                "share": share,
                "wasted_ms": None if ms is None else ms * share * largest.wasted,
            }
        )
    return from_rows("slice_gradients", [*result, *_outside(tables, scales)])


def added_slices(graph: Graph) -> Iterator[Slices]:
    """Of a post-grad graph: slices that are written into zeros, one into each, and added."""
    ends: dict[str, str] = {}  # of what is added: the sum
    sums: dict[str, list[Node]] = defaultdict(list)
    for node in reversed(graph.operations):
        if node.op != _ADD and node.op not in _OF_SLICES:
            continue
        sizes = tensor_sizes(node.meta)
        users = (graph.nodes[name] for name in graph.users[node.name])
        added = (user for user in users if user.op == _ADD and tensor_sizes(user.meta) == sizes)
        above = next(added, node)
        ends[node.name] = ends.get(above.name, node.name)
        base = graph.nodes[graph.base(node.inputs[0])[0]] if node.op in _OF_SLICES else None
        if base and base.op == "aten.full" and _ZEROS.match(base.args):
            sums[ends[node.name]].append(node)
    for found in sums.values():
        whole = elements_of(found[0])
        parts = [part_of(graph, node) for node in found]
        needed = sum(elements_of(part) or 0 for part in parts if part)
        if len(found) < _LEAST_SLICES or not whole or not needed:
            continue
        single = sum(node.op == _OF_SLICES[0] for node in found)
        dims = Counter(int(dim[1]) if (dim := _DIM.match(node.args)) else 0 for node in found)
        # Such scatters may have no line. What adds them is traced right after them.
        lines: Counter[str] = Counter()
        for node in found:
            places = (node, *(graph.nodes[name] for name in graph.users[node.name]))
            lines.update([each.user_line for each in places if each.user_line][:1])
        if len(found) * whole >= LEAST_WASTE * needed:
            order = tuple(line for line, _ in lines.most_common())
            of = (dims.most_common(1)[0][0], 2 * single >= len(found), order)
            yield Slices(len(found), whole, needed, *of)


def _outside(tables: Tables, scales: Mapping[Any, float | None]) -> Iterator[Row]:
    """Rows of slices that compiled functions give out, whose gradients eager code adds.

    ``scales``: as ``timed_scales`` gives them.
    """
    views = grouped(tables["output_views"].iter_rows(named=True), "pass", "rank")
    if not any(row["views"] >= _LEAST_SLICES for rows in views.values() for row in rows):
        return
    ops = tables["cpu_ops"].filter(pl.col("step").is_not_null(), stance="compiled")
    for key, rows in views.items():
        of_run = [pl.col(c).eq_missing(pl.lit(v)) for c, v in zip(_RUN, key, strict=True)]
        mine = ops.filter(*of_run)
        kernels = tables["kernels"].filter(*of_run, stance="compiled").drop_nulls("cpu_op_id")
        above = parents(mine)
        number = max(1, mine["step"].n_unique())
        for name, operator in _IN_EAGER.items():
            is_root = mine["name"] == marks.AUTOGRAD + name
            made = mine.filter(name=operator).drop_nulls("concrete_inputs")
            slices = round(is_root.sum() / number)
            if slices < _LEAST_SLICES or made.is_empty() or key not in scales:
                continue
            _, sizes, dim, *_ = json.loads(made["concrete_inputs"][0])
            host_ms = int(mine.filter(is_root)["duration_ns"].sum()) / number / 1e6
            inside = mine.filter(nearest(is_root, above).is_not_null())["op_id"]
            launched = kernels.filter(pl.col("cpu_op_id").is_in(inside.implode()))
            ms = int(launched["duration_ns"].sum()) / number / 1e6 if len(kernels) else host_ms
            scale = scales[key]
            scaled = None if scale is None else ms * scale
            yield {
                **dict(zip(_RUN, key, strict=True)),
                "kernel_name": name,
                "slices": slices,
                "elements": prod(json.loads(sizes)),
                "dim": int(dim),
                "single": name == "SelectBackward0",
                "user_lines": [row["user_line"] for row in rows if row["user_line"]],
                "count": float(slices),
                "profiled_ms": ms,
                "ms": scaled,
                "clock": "device" if len(kernels) else "host",
                "host_ms": None if scale is None else host_ms * scale,
                "share": 1.0,
                "wasted_ms": None if scaled is None else scaled * (1 - 1 / slices),
            }
