"""Attention that is computed in steps: table ``plain_attention``.

A batched product (queries and keys), a softmax over its result, the scores, and a batched product
of that (with the values). Inductor has patterns for many such forms and calls one operator for
them; what is in the table none of them fits. Read is AOTAutograd's graph of the forward or of the
inference: from the first product's result only elementwise operations and sums over its last
dimension lead to the second product. The cost is that of the generated kernels, forward and
backward, that read or write a tensor with as many elements as the scores have.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from math import prod
from typing import Any, NamedTuple

import polars as pl

from traceview.derive.facts.rows import ran_generated, timed_scales
from traceview.derive.kernel_groups import Origins
from traceview.derive.limits.generated import GeneratedCode
from traceview.tables import Tables, from_rows
from traceview.torchtext.fx import ITEM, Graph, Node, read_graph, tensor_sizes

Row = dict[str, Any]
_GRAPHS = ("aot_forward", "aot_inference")
_PRODUCTS = ("aten.bmm", "aten.baddbmm")
#: Of the last dimension: what a softmax is made of.
_OVER_ROWS = ("aten.amax", "aten.sum", "prims.prepare_softmax_online")
_EXP, _SOFTMAX = "aten.exp", ("aten._softmax", "aten._safe_softmax")
_MOST = 64


class Attention(NamedTuple):
    """``scores``: sizes of the first product's result; ``line`` of the user's own code, or None."""

    scores: tuple[int, ...]
    line: str | None


def in_steps(graph: Graph) -> Iterator[Attention]:
    """Softmaxes between two batched products whose result nothing else reads."""
    for product in graph.operations:
        sizes = tensor_sizes(product.meta) if product.op in _PRODUCTS else None
        if sizes is None or len(sizes) != 3:
            continue
        node = _second(graph, product, sizes)
        if node is not None:
            yield Attention(sizes, node.user_line or product.user_line)


def _second(graph: Graph, product: Node, scores: tuple[int, ...]) -> Node | None:
    """The product with the values, where a softmax leads to it, and to nothing else."""
    elements, has_exp, last = prod(scores), False, None
    seen, todo = {product.name}, [product.name]
    while todo and len(seen) < _MOST:
        for user in graph.users.get(todo.pop(), ()):
            node = graph.nodes[user]
            if user in seen:
                continue
            seen.add(user)
            sizes = tensor_sizes(node.meta)
            if node.op == "aten.bmm":
                if last is not None or node.inputs[0] not in seen:
                    return None
                last = node
            elif node.op in _OVER_ROWS or node.op == ITEM or (sizes and prod(sizes) == elements):
                has_exp |= node.op == _EXP or node.op in _SOFTMAX
                todo.append(user)
            elif sizes and prod(sizes) * scores[-1] != elements:
                return None  # a mean over heads, say
    return last if has_exp else None


def plain_attention(tables: Tables) -> pl.DataFrame | None:
    """Table ``plain_attention``; None where no step was profiled."""
    if (ran := ran_generated(tables)) is None:
        return None
    found: dict[str, dict[str | None, list[Attention]]] = {}
    graphs = tables["graphs"].filter(pl.col("kind").is_in(_GRAPHS))
    for key, text in graphs.select("compile_key", "text").iter_rows():
        for each in in_steps(read_graph(text or "")):
            found.setdefault(key, {}).setdefault(each.line, []).append(each)
    if not found:
        return from_rows("plain_attention", [])
    scales = timed_scales(tables)
    code, origins = GeneratedCode(tables), Origins(tables)
    spent: dict[tuple[Any, ...], Row] = {}
    names: dict[tuple[Any, ...], list[str]] = defaultdict(list)
    keys = ("pass", "rank", "name", "compile_id", "graph_key", "clock")
    kernels = ran.group_by(keys, maintain_order=True).agg(pl.col("ms").sum())
    for kernel in kernels.sort("ms", descending=True, maintain_order=True).iter_rows(named=True):
        origin = origins.of_kernel(kernel)
        lines = found.get(origin["compile_key"]) if origin else None
        if origin is None or lines is None:
            continue
        functions = code.functions(kernel["pass"], kernel["graph_key"], kernel["compile_id"])
        touched = {
            prod(size or 0 for size in argument.buffer.dims)
            for function in functions
            for site in function.sites
            if site.kernel == origin["kernel_name"]
            for argument in site.arguments
            if argument.buffer is not None
        }
        mine = [line for line in lines if line in (origin["user_lines"] or ())]
        for line in mine or ([*lines] if len(lines) == 1 else []):
            if touched.isdisjoint(prod(each.scores) for each in lines[line]):
                continue
            place = kernel["pass"], kernel["rank"], origin["compile_key"], line
            scale = scales.get(place[:2])
            row = spent.setdefault(
                place,
                {
                    **{key: kernel[key] for key in ("pass", "rank", "clock")},
                    **{key: origin[key] for key in ("compile_key", "compile_id")},
                    "line": line,
                    "calls": len(lines[line]),
                    "scores": list(max(lines[line], key=lambda each: prod(each.scores)).scores),
                    "profiled_ms": 0.0,
                    "ms": None if scale is None else 0.0,
                },
            )
            row["profiled_ms"] += kernel["ms"]
            row["ms"] = None if scale is None else row["ms"] + scale * kernel["ms"]
            names[place].append(origin["kernel_name"])
            break
    rows = [{**row, "kernel_names": names[place]} for place, row in spent.items()]
    return from_rows("plain_attention", sorted(rows, key=lambda row: -row["profiled_ms"]))
