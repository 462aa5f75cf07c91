"""Attention in a slow form: tables ``plain_attention`` and ``repeated_heads``.

Attention in steps: a batched product (queries and keys), a softmax over its result, the scores,
and a batched product of that (with the values). Inductor has patterns for many such forms and calls
one operator for them; what is in the table none of them fits. Read is AOTAutograd's graph of the
forward or of the inference: from the first product's result only elementwise operations and sums
over its last dimension lead to the second product. The cost is that of the generated kernels,
forward and backward, that read or write a tensor with as many elements as the scores have.

Repeated heads: keys and values that an operator of attention takes and that are an expanded tensor,
written out, so that each head of the queries has its own. The cost is that of the generated kernels
that read or write a tensor with as many elements; and where memory limits the operator, the part of
its time for what it reads more than once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple, TypeVar

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
_ATTENTION, _EXPAND = "_scaled_dot_product_", "aten.expand"
_COPIES = ("aten.clone", "aten._to_copy", "prims.convert_element_type")


class Attention(NamedTuple):
    """``scores``: sizes of the first product's result; ``line`` of the user's own code, or None."""

    scores: tuple[int, ...]
    line: str | None

    @property
    def elements(self) -> int:
        return prod(self.scores)


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


class Repeated(NamedTuple):
    """Keys or values that are written out ``times`` as often as they are there."""

    elements: int
    times: int
    line: str | None


def repeated(graph: Graph) -> Iterator[Repeated]:
    """Operands of attention's operators that are a copy of an expanded tensor."""
    for node in graph.operations:
        if _ATTENTION not in node.op:
            continue
        for name in node.inputs[1:3]:
            if found := written_out(graph, name):
                yield found


def written_out(graph: Graph, name: str) -> Repeated | None:
    """Where ``name`` is a view of a copy of an expanded tensor."""
    copied, line = None, None
    for _ in range(_MOST):
        node = graph.nodes[name]
        if node.op == _EXPAND and node.inputs:
            before = prod(tensor_sizes(graph.nodes[node.inputs[0]].meta) or ())
            after = prod(tensor_sizes(node.meta) or ())
            if copied is None or before < 1 or after < 2 * before:
                return None
            return Repeated(copied, after // before, line or node.user_line)
        if node.op in _COPIES and (sizes := tensor_sizes(node.meta)):
            copied, line = copied or prod(sizes), line or node.user_line
        elif not node.is_view:
            return None
        if not node.inputs:
            return None
        name = node.inputs[0]
    return None


def plain_attention(tables: Tables) -> pl.DataFrame | None:
    """Table ``plain_attention``; None where no step was profiled."""
    if (ran := ran_generated(tables)) is None:
        return None
    rows = []
    for row, mine in _spent(tables, ran, _by_line(tables, in_steps, "aten.bmm")):
        scores = list(max(mine, key=lambda each: each.elements).scores)
        rows.append({**row, "calls": len(mine), "scores": scores})
    return from_rows("plain_attention", rows)


def repeated_heads(tables: Tables) -> pl.DataFrame | None:
    """Table ``repeated_heads``; None where no step was profiled."""
    if (ran := ran_generated(tables)) is None:
        return None
    found = _by_line(tables, repeated, _ATTENTION)
    limits = tables["kernel_limits"].filter(stance="compiled", category="attention", bound="memory")
    only = sum(map(len, found.values())) == 1  # then all attention is this one's
    rows = []
    for row, mine in _spent(tables, ran, found):
        times = max(each.times for each in mine)
        own = pl.col("rank").eq_missing(pl.lit(row["rank"], dtype=pl.Int32))
        reads = limits.filter(own, pl.col("pass").eq(row["pass"]))
        spared = float(reads["ms"].sum()) * (1 - 1 / times) if only else 0.0
        rows.append({**row, "copies": len(mine), "times": times, "spared_ms": spared})
    return from_rows("repeated_heads", rows)


F = TypeVar("F", Attention, Repeated)
#: Compile → line of the user's code → what its graph has there.
Found = Mapping[str, Mapping[str | None, Sequence[F]]]


def _by_line(tables: Tables, read: Callable[[Graph], Iterator[F]], word: str) -> Found[F]:
    """What ``read`` finds in graphs of a forward or an inference; all that it may has ``word``."""
    found: dict[str, dict[str | None, list[F]]] = {}
    graphs = tables["graphs"].filter(
        pl.col("kind").is_in(_GRAPHS), pl.col("text").str.contains(word, literal=True)
    )
    for key, text in graphs.select("compile_key", "text").iter_rows():
        for each in read(read_graph(text)):
            found.setdefault(key, {}).setdefault(each.line, []).append(each)
    return found


def _spent(tables: Tables, ran: pl.DataFrame, found: Found[F]) -> list[tuple[Row, Sequence[F]]]:
    """What generated kernels take that read or write tensors of as many elements, slowest first.

    A row for each line where something was found, with all that was found there.
    """
    if not found:
        return []
    scales = timed_scales(tables)
    code, origins = GeneratedCode(tables), Origins(tables)
    spent: dict[tuple[Any, ...], Row] = {}
    keys = ("pass", "rank", "name", "compile_id", "graph_key", "clock")
    kernels = ran.group_by(keys, maintain_order=True).agg(pl.col("ms").sum())
    for kernel in kernels.sort("ms", descending=True, maintain_order=True).iter_rows(named=True):
        origin = origins.of_kernel(kernel)
        if origin is None or origin["compile_key"] not in found:
            continue
        lines: Mapping[str | None, Sequence[F]] = found[origin["compile_key"]]
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
            if touched.isdisjoint(each.elements for each in lines[line]):
                continue
            place = kernel["pass"], kernel["rank"], origin["compile_key"], line
            scale = scales.get(place[:2])
            row = spent.setdefault(
                place,
                {
                    **{key: kernel[key] for key in ("pass", "rank", "clock")},
                    **{key: origin[key] for key in ("compile_key", "compile_id")},
                    "line": line,
                    "kernel_names": [],
                    "profiled_ms": 0.0,
                    "ms": None if scale is None else 0.0,
                },
            )
            row["profiled_ms"] += kernel["ms"]
            row["ms"] = None if scale is None else row["ms"] + scale * kernel["ms"]
            row["kernel_names"].append(origin["kernel_name"])
            break
    slowest = sorted(spent.values(), key=lambda row: -row["profiled_ms"])
    return [(row, found[row["compile_key"]][row["line"]]) for row in slowest]
