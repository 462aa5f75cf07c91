"""Equal blocks in a graph that Dynamo captured: in a row, or calls of a function further apart."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import msgspec

from traceview.rules import _places
from traceview.rules.finding import Location
from traceview.torchtext.fx import Node, read_nodes

#: A shorter pattern is no block: it is a chain of one kind of operation.
_FEWEST_OPERATIONS = 4
#: Distances at which repeats are looked for, the commonest first.
_DISTANCES = 8


class Operation(NamedTuple):
    """One line of a graph that Dynamo captured; ``meta`` is what it makes: dtype and shape."""

    op: str
    meta: str | None
    place: Location | None


class Blocks(msgspec.Struct, frozen=True):
    """``count`` equal blocks: one's operations, and how many the graph has.

    ``in_a_row``: nothing stands between them.
    """

    operations: tuple[Operation, ...]
    count: int
    graph_operations: int
    in_a_row: bool = True

    @property
    def share(self) -> float:
        """Of the graph's operations, those that lie in blocks after the first."""
        return len(self.operations) * (self.count - 1) / self.graph_operations

    @property
    def place(self) -> Location | None:
        return next((one.place for one in self.operations if one.place), None)


def operations(text: str) -> list[Operation]:
    """The operations of Dynamo's graph in order, without the names of what they read and make."""
    return [
        Operation(op, node.meta or None, _places.if_users(*node.place) if node.place else None)
        for node in read_nodes(text)
        if (op := _op(node))
    ]


def _op(node: Node) -> str:
    """``torch.tanh``, ``.view`` of a method, ``+``; nothing for another name of the same thing."""
    if node.target.startswith("torch."):
        return node.target
    if node.args.startswith("("):
        return f".{node.target.rpartition('.')[2]}"
    return re.sub(r"[\w.\s]+", "", node.args)


def repeated(graph: Sequence[Operation], fewest: int = 2) -> Blocks | None:
    """The ``fewest`` equal blocks or more that hold the most operations; None where none are."""
    if any("invoke_subgraph" in one.op for one in graph):
        return None  # blocks that are nested regions already
    found = [one for one in (*_in_a_row(graph), *_calls(graph)) if one.count >= fewest]
    return max(found, key=lambda blocks: blocks.count * len(blocks.operations), default=None)


def _in_a_row(graph: Sequence[Operation]) -> Iterator[Blocks]:
    for distance in _distances(graph):
        start, length = _longest_run(graph, distance)
        if length >= distance:
            block = tuple(graph[start : start + distance])
            yield Blocks(block, length // distance + 1, len(graph))


def _calls(graph: Sequence[Operation]) -> Iterator[Blocks]:
    """Stretches of one function's own lines, wherever they stand."""
    stretches = (tuple(found) for _, found in groupby(graph, key=_function))
    for block, count in Counter(stretches).most_common():
        if count > 1 and len(block) >= _FEWEST_OPERATIONS and block[0].place:
            yield Blocks(block, count, len(graph), in_a_row=False)


def _function(one: Operation) -> tuple[str, str | None] | None:
    return (one.place.file, one.place.function) if one.place else None


def _distances(graph: Sequence[Operation]) -> list[int]:
    """The commonest distances between an operation and the next one like it, short ones first."""
    last: dict[Operation, int] = {}
    found: Counter[int] = Counter()
    for at, one in enumerate(graph):
        if one in last:
            found[at - last[one]] += 1
        last[one] = at
    common = [distance for distance, _ in found.most_common(_DISTANCES)]
    return sorted(distance for distance in common if distance >= _FEWEST_OPERATIONS)


def _longest_run(graph: Sequence[Operation], distance: int) -> tuple[int, int]:
    """(start, length) of the longest stretch that is the same ``distance`` operations later."""
    best, start = (0, 0), 0
    for at in range(len(graph) - distance):
        if graph[at] != graph[at + distance]:
            start = at + 1
        elif at + 1 - start > best[1]:
            best = (start, at + 1 - start)
    return best
