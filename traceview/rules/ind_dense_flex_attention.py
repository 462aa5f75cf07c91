"""
## What it finds
`flex_attention` whose score function sets scores to minus infinity, without a `block_mask`.

## Why it costs
The kernel computes every score and then drops those of masked places. With a `block_mask` it knows
which blocks of 128 by 128 places have nothing to compute, and it skips them. For a window of 256 in
a sequence of 8,192 that is 95 % of the work.

## Evidence
Dynamo's graph: the call has no block mask, and its `score_mod` returns
`torch.where(…, score, -inf)`. Where the condition depends on the places of query and key alone, it
is evaluated at five by five places of each block; blocks without any that is kept could be
skipped. The saving is their share of the attention's kernels.

## What to do
Return the condition from a `mask_mod`, and call
`create_block_mask(mask_mod, None, None, Q_LEN, KV_LEN)` once, outside of the step. Pass the result
as `block_mask=`, and leave in the `score_mod` what changes scores, if anything.

## Settings
- `least_share`: part of the compiled step, 0 to 1, that skipping must save.

## References
- https://docs.pytorch.org/docs/stable/nn.attention.flex_attention.html
- https://pytorch.org/blog/flexattention/
- torch/nn/attention/flex_attention.py, `create_block_mask`
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import NamedTuple

from traceview.rules._gain import at_first, locations
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Snippet,
    Tables,
    first_rank,
    from_row,
    milliseconds,
    percent,
    plural,
    rows,
    severity,
    step_ms,
)
from traceview.torchtext.fx import Graph, Node, read_graph, tensor_sizes

CODE = "TV435"
NEEDS = frozenset({"graphs", "kernel_groups", "step_counts"})
SEVERITIES = ("warning", "info")

#: Less is not worth a change of the code.
LEAST_SHARE = 0.05
_NAME = "flex_attention"
_CLASS = re.compile(r"^\s*class (\w+)\(torch\.nn\.Module\):", re.MULTILINE)
_CALL = "higher_order.flex_attention"
#: ``_LARGE_SPARSE_BLOCK_SIZE``: one block is all, as no mask was given.
_ONE_BLOCK = re.compile(r"\(([\w.-]+), ([\w.-]+), [\w.-]+, (\w+), .*?\b1073741824, 1073741824,")
_MASKED = re.compile(r"^\((\w+), (\w+), -inf\)$")
_SIGN = re.compile(r"^([\w-]+) \S+ ([\w-]+)$")
_SIGNS = frozenset(
    {"ge", "le", "gt", "lt", "eq", "ne"} | {"add", "sub", "mul", "floordiv", "mod", "and_", "or_"}
)
#: Of torch's functions and methods, by the words that ``Node.word`` has for them.
_FUNCTIONS: dict[str, Callable[..., int]] = {
    **{"abs": abs, "neg": operator.neg, "minimum": min, "maximum": max},
    **{"logical_and": operator.and_, "bitwise_and": operator.and_},
    **{"logical_or": operator.or_, "bitwise_or": operator.or_, "logical_not": operator.not_},
}
_OPERANDS = re.compile(r"^\(([\w-]*(?:, [\w-]+)*)\)$")
#: Elements of a block in each direction, and most blocks: a long sequence has larger ones.
_BLOCK, _MOST_BLOCKS = 128, 64


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """At most one finding: all such calls."""
    step = step_ms(tables, "compiled")
    groups = first_rank(rows(tables, "kernel_groups", stance="compiled"))
    spent = sum(row["ms"] or 0.0 for row in groups if _NAME in row["name"])
    if not step or not spent:
        return
    calls = [
        (call, row)
        for row in first_rank(rows(tables, "graphs", kind="dynamo_output"))
        if _NAME in (row["text"] or "")
        for call in dense_calls(row["text"])
    ]
    known = [call.kept for call, _ in calls if call.kept is not None]
    if not known:
        return
    kept = sum(known) / len(known)
    saved = min(spent, step) * (1 - kept)
    if saved < least_share * step:
        return
    places = locations(call.line for call, _ in calls)
    at = at_first(*places)
    yield Finding(
        code=CODE,
        rule="ind-dense-flex-attention",
        severity=severity(tables, saved),
        title=(
            f"flex_attention computes scores that its score_mod{at} masks: a block_mask would save "
            f"about {milliseconds(saved)}, {percent(saved / step)} of the step"
        ),
        explanation=(
            f"{percent(1 - kept)} of the blocks of scores are set to minus infinity and computed "
            "all the same. With a block_mask the kernel skips them."
        ),
        cost=Cost(saved, None, f"{percent(1 - kept)} of {milliseconds(spent)} in flex_attention"),
        confidence="derived",
        location=places[0] if places else None,
        evidence=(
            from_row(
                f"{plural(len(calls), 'call')} without block_mask, blocks that are needed: "
                f"{percent(kept)}",
                "graphs",
                calls[0][1],
            ),
            Evidence(f"kernels of flex_attention: {milliseconds(spent)} a step", "kernel_groups"),
        ),
        what_to_do=(
            "Return the condition from a mask_mod, make a block mask of it once, outside of the "
            "step, and pass that instead of the score_mod."
        ),
        snippet=Snippet(
            "python",
            "block_mask = create_block_mask(mask_mod, None, None, Q_LEN, KV_LEN)\n"
            "flex_attention(query, key, value, block_mask=block_mask)",
        ),
        also_at=tuple(places[1:4]),
        weighs=True,
    )


class Dense(NamedTuple):
    """A call without a block mask whose score function sets some scores to -inf.

    ``kept``: the share of blocks of 128 by 128 places, or larger ones, that have others; None: it
    depends on more than the places. ``line``: ``file:line`` of the function.
    """

    line: str | None
    kept: float | None


def dense_calls(text: str) -> Iterator[Dense]:
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
            lengths = _length(graph.nodes.get(call[1])), _length(graph.nodes.get(call[2]))
            for where in function.operations:
                if where.op == "where" and (parts := _MASKED.match(where.args)):
                    key = where.user_line, *lengths
                    if key not in known:
                        known[key] = _kept(function, parts[1], *lengths)
                    yield Dense(where.user_line, known[key])
                    break


def _length(operand: Node | None) -> int | None:
    """Of a sequence: the last but one size."""
    sizes = tensor_sizes(operand.meta) if operand else None
    return sizes[-2] if sizes and len(sizes) > 1 else None


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
    if node.args.startswith("~"):
        return int(not _value(function, node.args[1:], known))
    sign, parts = node.target.removeprefix("operator."), _SIGN.match(node.args)
    if sign in _SIGNS and parts is not None:
        one, other = (_value(function, part, known) for part in parts.groups())
        return int(getattr(operator, sign)(one, other))
    called = _OPERANDS.match(node.args)
    if node.word not in _FUNCTIONS or called is None:
        raise KeyError(name)
    given = called[1].split(", ") if called[1] else []
    if node.op.startswith("Tensor."):  # a method
        given.insert(0, node.inputs[0])
    return int(_FUNCTIONS[node.word](*(_value(function, each, known) for each in given)))
