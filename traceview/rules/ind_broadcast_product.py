"""
## What it finds
A matrix product that is written as a broadcast and a sum: pairwise distances,
`(x[:, None] - y[None]).square().sum(-1)`, or `(a[:, :, None] * b[None]).sum(1)`.

## Why it costs
Eager makes a tensor of all pairs and all their features. Inductor fuses that away, which helps a
lot, but the kernel still subtracts, multiplies and adds for each of these elements with ordinary
instructions, and reads its inputs again for each pair. A matrix product does the same work in
blocks that stay in registers and caches, on a GPU with tensor cores where the dtype has them.

## Evidence
Inductor's graph: a sum or mean of a product of two tensors, or of the square of their difference,
where each has a dimension that the other is broadcast along. A weight for each feature may be in
it; an absolute value, a maximum or an exponential makes it no product. Reported are 16 features or
more, and as many rows on both sides. The cost is what the kernels that compute it take, less what a
product of these sizes takes: its operations at the rate of matrix products that was measured at the
run's end, and its operands and result at the measured bandwidth; of distances, the result twice
more, as the squared norms are added to it. That is the most: small products do not reach this rate,
and what else the kernels do (an exponential of the result) has to be done all the same.

## What to do
A product: `a @ b` or `torch.einsum`. Distances: `torch.cdist`, which takes the product where there
are more than 25 rows, or `x.square().sum(-1)[:, None] + y.square().sum(-1) - 2 * x @ y.T`, which
Inductor fuses with what comes next. To find the nearest of `y`, leave out the term of `x`.

This expansion has a price: where two points are close to each other and far from zero, it subtracts
large numbers that are almost equal, and few digits are left; it may even be negative. In float32
it is fine for nearest neighbors and kernels of wide reach. Subtract the mean of `y` from both if
they lie far from zero, `clamp_min(0)` before a square root, and compare the results.

## Settings
- `least_share`: part of the compiled step, 0 to 1, that a matrix product must save.

## References
- https://docs.pytorch.org/docs/stable/generated/torch.cdist.html
- https://docs.pytorch.org/docs/stable/generated/torch.einsum.html
- https://docs.pytorch.org/docs/stable/notes/numerical_accuracy.html
- torch/functional.py, `cdist`
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from math import prod
from typing import NamedTuple

from traceview.derive.facts.rows import timed_scale
from traceview.derive.limits.ceilings import Ceilings, ceilings_of
from traceview.rules._gain import at_first, locations, paced
from traceview.rules._starts import of_keys
from traceview.rules.kit import (
    MOST_EVIDENCE,
    Cost,
    Finding,
    Row,
    Snippet,
    Tables,
    about,
    first_rank,
    from_row,
    milliseconds,
    percent,
    plural,
    rows,
    severity,
    step_ms,
)
from traceview.torchtext.fx import Graph, Node, read_graph, tensor_sizes, tensor_strides
from traceview.torchtext.output_code import PROFILED_CPP

CODE = "TV442"
NEEDS = frozenset({"graphs", "kernel_calls", "matched_kernels", "ceilings", "step_counts"})
SEVERITIES = ("warning", "info")

#: A smaller gain is hard to tell from noise.
LEAST_SHARE = 0.05
#: Rows on both sides, and features, from which a product comes near the rate of large ones.
LEAST_SIZE = 16
_REDUCED = re.compile(r"^\(\w+, \[(-?\d+(?:, -?\d+)*)\]")
_SUMS = frozenset({"aten.sum", "aten.mean"})
_CAST = "prims.convert_element_type"
#: What may come between with a number; of a difference that is squared, the others, too.
_SCALED = frozenset({"aten.mul", "aten.div", "aten.neg", _CAST})
_SHIFTED = frozenset({"aten.add", "aten.sub"})
_RAN = ("ms", "count")


class Product(NamedTuple):
    """``batch`` products of ``rows`` by ``inner`` and ``inner`` by ``columns``, summed in ``node``.

    ``distances``: of squared differences; ``bytes`` of the result; ``line``: ``file:line`` of the
    user's own code.
    """

    node: str
    batch: int
    rows: int
    columns: int
    inner: int
    distances: bool
    dtype: str
    device: str
    bytes: int
    line: str | None

    def least_ms(self, ceilings: Ceilings) -> float | None:
        """What the library takes for it at least; None where that was not measured."""
        pairs = self.rows * self.columns
        moved = (self.rows + self.columns) * self.inner + (3 if self.distances else 1) * pairs
        work = {
            **{"dtype": self.dtype, "category": "gemm"},
            "flops": 2 * self.batch * pairs * self.inner,
            "bytes": self.bytes * moved // pairs,
        }
        sides = ceilings.compute(work), ceilings.memory(work)
        return 1e3 * sum(side.seconds for side in sides if side) if all(sides) else None

    def is_in(self, call: Row) -> bool:
        """Whether a call of ``kernel_calls`` computes it; by its line where nodes are not known."""
        if call["post_nodes"] is not None:
            return self.node in call["post_nodes"]
        return self.line in (call["user_lines"] or ()) and not _SUMS.isdisjoint(call["ops"] or ())


class Computed(NamedTuple):
    """A product, the first ``call`` of its kernels, ms of a step in them, and by the library."""

    product: Product
    call: Row
    ms: float
    least_ms: float


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """At most one finding: all such products together, at the line that most time is lost at."""
    step = step_ms(tables, "compiled")
    found = sorted(computed(tables), key=lambda each: each.least_ms - each.ms)
    found = [each for each in found if each.ms > each.least_ms]
    spent, least = (sum(getattr(each, key) for each in found) for key in ("ms", "least_ms"))
    saved, pace = paced(tables, spent - least)
    if not step or not found or saved < least_share * step:
        return
    product = found[0].product
    places = locations(each.product.line for each in found)
    at = at_first(*places)
    batch = f"{product.batch:,} × " if product.batch > 1 else ""
    m, n, k = (f"{size:,}" for size in (product.rows, product.columns, product.inner))
    what = f"The product{at} ({batch}{m}×{k} by {k}×{n}) is"
    if product.distances:
        what = f"Pairwise distances{at} ({batch}{m} × {n}, {k} features) are"
    rate = f"matrix products take at least {milliseconds(least)} at the measured ceilings"
    yield Finding(
        code=CODE,
        rule="ind-broadcast-product",
        severity=severity(tables, saved),
        title=(
            f"{what} computed by a broadcast and a sum: a matrix product would save up to "
            f"{milliseconds(saved)}, {percent(saved / step)} of the step"
        ),
        explanation=(
            f"A step spends {milliseconds(spent)} in "
            f"{plural(len({each.call['kernel_name'] for each in found}), 'generated kernel')} that "
            "subtract or multiply for each pair and feature with ordinary instructions. Eager "
            "also stores all these elements."
        ),
        cost=Cost(saved, None, f"of {milliseconds(spent)} in these kernels: {rate}{pace}"),
        confidence="derived",
        location=places[0] if places else None,
        about=about(*of_keys(tables, {each.call["compile_key"] for each in found})),
        evidence=tuple(
            from_row(
                f"{call['kernel_name']}: {milliseconds(ms)} of a step, a product of "
                f"{each.rows:,} × {each.columns:,} × {each.inner:,} in {each.dtype} at least "
                f"{milliseconds(of_product)}",
                "kernel_calls",
                call,
            )
            for each, call, ms, of_product in found[:MOST_EVIDENCE]
        ),
        what_to_do=_EXPAND if product.distances else _MULTIPLY,
        snippet=_EXPANDED if product.distances else _MULTIPLIED,
        also_at=tuple(places[1:4]),
        weighs=True,
    )


_EXPAND = (
    "Use torch.cdist, or expand the square: Inductor fuses the rest of it with what comes next. "
    "The expansion loses digits where points are close to each other and far from zero: in "
    "float32 it is fine for nearest neighbors. Compare the results."
)
_EXPANDED = Snippet(
    "python",
    "distances = x.square().sum(-1)[:, None] + y.square().sum(-1) - 2 * x @ y.T\n"
    "distances = torch.cdist(x, y)  # their square roots",
)
_MULTIPLY = (
    "Write it as `a @ b`, or with torch.einsum. In float32 on a GPU it stays in full precision "
    "unless TF32 is allowed."
)
_MULTIPLIED = Snippet("python", "a @ b  # not (a[:, :, None] * b[None]).sum(1)")


def computed(tables: Tables) -> Iterator[Computed]:
    """Each such product of compiled code, with its part of the kernels that compute it."""
    counts = first_rank(rows(tables, "step_counts", stance="compiled"))
    timed, profiled = (counts[0][key] if counts else None for key in ("timed_step_ms", "step_ms"))
    scale = timed_scale(timed, profiled) or 1.0
    ran: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in first_rank(rows(tables, "matched_kernels", stance="compiled")):
        plain = re.sub(PROFILED_CPP, r"\1", row["name"])
        ran[row["compile_id"], row["aot_id"], plain].append(row)
    for graph in first_rank(rows(tables, "graphs", kind="post_grad")):
        of_graph = {name: graph[name] for name in ("compile_key", "aot_id")}
        calls = rows(tables, "kernel_calls", **of_graph)
        text = graph["text"] if calls else None
        if not text or not any(f"{op}." in text for op in _SUMS):
            continue  # others need not be read
        products = list(broadcast_products(read_graph(text)))
        sites = Counter(call["kernel_name"] for call in calls)
        inside = [[each for each in products if each.is_in(call)] for call in calls]
        for product in products:
            found: list[tuple[Row, float, float]] = []  # call, ms and runs of a step
            for call, others in zip(calls, inside, strict=True):
                if product in others:
                    key = call["compile_id"], call["aot_id"], call["kernel_name"]
                    ms, count = (sum(row[name] or 0.0 for row in ran[key]) for name in _RAN)
                    at = sites[call["kernel_name"]]
                    found.append((call, ms / at / len(others), count / at))
            ceilings = ceilings_of(tables, graph["pass"], graph["rank"], product.device)
            least = product.least_ms(ceilings)
            if found and least is not None:
                runs = max(count for _, _, count in found)
                spent = scale * sum(ms for _, ms, _ in found)
                yield Computed(product, found[0][0], spent, runs * least)


def broadcast_products(graph: Graph) -> Iterator[Product]:
    """Of a post-grad graph."""
    for node in graph.operations:
        dims = _REDUCED.match(node.args) if node.op in _SUMS else None
        sizes = tensor_sizes(graph.nodes[node.inputs[0]].meta) if dims and node.inputs else None
        if not dims or not sizes or not node.bytes:
            continue
        reduced = {int(dim) % len(sizes) for dim in dims[1].split(",")}
        reduced = {dim for dim in reduced if sizes[dim] > 1}
        if not (core := multiplied(graph, node.inputs[0], reduced)):
            continue
        left, right = (varied(graph.nodes[name], len(sizes)) for name in core.inputs)
        batch, m, n, k = (
            prod(sizes[dim] for dim in dims)
            for dims in ((left & right) - reduced, left - right, right - left, reduced)
        )
        if min(m, n, k) >= LEAST_SIZE and reduced <= left & right and core.dtype:
            device, distances = core.meta.rpartition("]")[2], core.op in _SHIFTED
            of = (core.dtype, device, node.bytes, node.user_line)
            yield Product(node.name, batch, m, n, k, distances, *of)


def multiplied(graph: Graph, name: str, reduced: set[int]) -> Node | None:
    """What combines two tensors below a sum of ``name`` over the dimensions ``reduced``.

    None where that is no matrix product, or where what is summed is needed elsewhere, too.
    """
    squared = False
    while (node := graph.nodes[name]).inputs:
        if len(graph.users[name]) > 1 or name in graph.outputs:
            return None
        first, *others = node.inputs
        itself = node.op == "aten.mul" and node.args == f"({first}, {first})"
        if itself or node.op == "aten.pow":
            if squared or not (itself or node.args in (f"({first}, 2)", f"({first}, 2.0)")):
                return None
            squared = True
        elif not others:
            if node.op not in (_SCALED | _SHIFTED if squared else _SCALED):
                return None
        elif node.op == "aten.mul":
            rank = len(tensor_sizes(node.meta) or ())
            weights = [each for each in node.inputs if varied(graph.nodes[each], rank) <= reduced]
            if len(weights) != 1:
                return None if squared else node
            first = next(each for each in node.inputs if each not in weights)
        else:
            return node if squared and node.op in _SHIFTED and len(others) == 1 else None
        name = first
    return None


def varied(node: Node, rank: int) -> set[int]:
    """Dimensions of ``rank`` that it is not broadcast along."""
    sizes, strides = tensor_sizes(node.meta) or (), tensor_strides(node.meta)
    ahead = rank - len(sizes)
    return {
        ahead + at
        for at, size in enumerate(sizes)
        if size > 1 and (strides is None or strides[at] != 0)
    }
