"""Calls of ``flex_attention`` in Dynamo's graphs, and which places their score functions mask.

    flex_attention = torch.ops.higher_order.flex_attention(query, key, value, score_mod_0, (1, 1,
        …, 1073741824, 1073741824, mask_fn_0), …)
    …
    class score_mod_0(torch.nn.Module):
        def forward(self, child: "f32[][]cpu", child_1: "i32[][]cpu", …):
            ge: "b8[][]cpu" = child_3 >= child_4
            where: "f32[][]cpu" = torch.where(ge, child, -inf)

Source of the format: ``torch/nn/attention/flex_attention.py``, ``torch/_higher_order_ops``.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator, Mapping
from itertools import product
from typing import NamedTuple

from traceview.torchtext.fx import Graph, read_graph

_CLASS = re.compile(r"^\s*class (\w+)\(torch\.nn\.Module\):", re.MULTILINE)
_CALL = "higher_order.flex_attention"
#: ``_LARGE_SPARSE_BLOCK_SIZE``: one block is all, as no mask was given.
_ONE_BLOCK = re.compile(r"\(([\w.-]+), ([\w.-]+), [\w.-]+, (\w+), .*?\b1073741824, 1073741824,")
_SIZES = re.compile(r"\w+\[([\d, ]*)\]")
_MASKED = re.compile(r"^\((\w+), (\w+), -inf\)$")
_SIGN = re.compile(r"^([\w-]+) \S+ ([\w-]+)$")
_SIGNS = frozenset(
    {"ge", "le", "gt", "lt", "eq", "ne"} | {"add", "sub", "mul", "floordiv", "mod", "and_", "or_"}
)
#: Of places in each direction, or more of a long sequence, so that there are no more than so many.
_BLOCK, _MOST_BLOCKS = 128, 64


class Dense(NamedTuple):
    """A call without a block mask whose score function sets some scores to -inf.

    ``kept``: the share of blocks of 128 by 128 places, or larger ones, that have others; None: it
    depends on more than the places. ``line``: ``file:line`` of the function.
    """

    line: str | None
    kept: float | None


def dense_flex_attention(text: str) -> Iterator[Dense]:
    """Of a graph, one for each call."""
    starts = [*_CLASS.finditer(text)]
    ends = [*(start.start() for start in starts[1:]), len(text)]
    graphs = {
        start[1]: read_graph(text[start.start() : end])
        for start, end in zip(starts, ends, strict=True)
    }
    known: dict[tuple[object, ...], float | None] = {}
    for graph in graphs.values():
        for node in graph.operations:
            if node.op != _CALL or not (call := _ONE_BLOCK.match(node.args)):
                continue
            function = graphs.get(call[3], Graph())
            lengths = [_length(graph, name) for name in (call[1], call[2])]
            for where in function.operations:
                if where.op == "where" and (parts := _MASKED.match(where.args)):
                    key = where.user_line, *lengths
                    if key not in known:
                        known[key] = _kept(function, parts[1], *lengths)
                    yield Dense(where.user_line, known[key])
                    break


def _length(graph: Graph, name: str) -> int | None:
    """Of a sequence: the last but one size."""
    sizes = _SIZES.match(graph.nodes[name].meta) if name in graph.nodes else None
    numbers = [int(size) for size in sizes[1].split(",")] if sizes and sizes[1] else []
    return numbers[-2] if len(numbers) > 1 else None


def _kept(function: Graph, condition: str, queries: int | None, keys: int | None) -> float | None:
    inputs = [node.name for node in function.inputs]
    if len(inputs) < 5 or not queries or not keys:
        return None
    (rows, across), (columns, down) = _blocks(queries), _blocks(keys)
    kept = 0
    for row, column in product(rows, columns):
        places = (
            {inputs[3]: min(row + i, queries - 1), inputs[4]: min(column + j, keys - 1)}
            for i, j in product(across, down)
        )
        try:
            kept += any(_value(function, condition, place) for place in places)
        except (KeyError, ValueError, ZeroDivisionError, RecursionError):
            return None
    return kept / (len(rows) * len(columns))


def _blocks(length: int) -> tuple[range, list[int]]:
    """Where blocks begin, and the places of one that are looked at: its edges, and between them."""
    size = max(_BLOCK, -(-length // _MOST_BLOCKS))
    return range(0, length, size), [0, size // 4, size // 2, 3 * size // 4, size - 1]


def _value(function: Graph, name: str, known: Mapping[str, int]) -> int:
    """Of a node, at the places ``known``; a ``KeyError`` where it depends on anything else."""
    if name in known:
        return known[name]
    if name not in function.nodes:
        return int(name)
    node = function.nodes[name]
    sign, parts = node.target.removeprefix("operator."), _SIGN.match(node.args)
    if sign not in _SIGNS or parts is None:
        raise KeyError(name)
    one, other = (_value(function, part, known) for part in parts.groups())
    return int(getattr(operator, sign)(one, other))
