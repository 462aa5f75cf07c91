"""Equal blocks in a row in a graph that Dynamo captured."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from traceview.rules import _places
from traceview.rules.finding import Location

#: A shorter pattern is no block: it is a chain of one kind of operation.
_FEWEST_OPERATIONS = 4
#: Distances at which repeats are looked for, the commonest first.
_DISTANCES = 8

_PLACE = re.compile(r"^\s*# File: (?P<file>.+?):(?P<line>\d{1,9}) in (?P<function>\w+)")
_ASSIGNED = re.compile(r'^ +\w+(?:: "(?P<meta>[^"]*)")? = (?P<value>.+?)(?:;  .*)?$')
_CALLED = re.compile(r"^([A-Za-z_][\w.]*)\(")


class Operation(NamedTuple):
    """One line of a graph that Dynamo captured; ``meta`` is what it makes: dtype and shape."""

    op: str
    meta: str | None
    place: Location | None


@dataclass(frozen=True, slots=True)
class Blocks:
    """``count`` equal blocks in a row: the first one's operations, and all of the graph's."""

    operations: tuple[Operation, ...]
    count: int
    graph_operations: int

    @property
    def share(self) -> float:
        """Of the graph's operations, those that lie in blocks after the first."""
        return len(self.operations) * (self.count - 1) / self.graph_operations

    @property
    def place(self) -> Location | None:
        return next((one.place for one in self.operations if one.place), None)


def operations(text: str) -> list[Operation]:
    """The operations of Dynamo's graph in order, without the names of what they read and make."""
    found: list[Operation] = []
    place: Location | None = None
    for line in text.splitlines():
        if at := _PLACE.match(line):
            place = _places.if_users(at["file"], int(at["line"]), at["function"])
        elif not line.strip():
            place = None
        elif (assigned := _ASSIGNED.match(line)) and (op := _op(assigned["value"])):
            found.append(Operation(op, assigned["meta"], place))
    return found


def _op(value: str) -> str:
    """``torch.tanh``, ``.view`` of a method, ``+``; nothing for another name of the same thing."""
    if called := _CALLED.match(value):
        name = called[1]
        return name if name.startswith("torch.") else f".{name.rpartition('.')[2]}"
    return re.sub(r"[\w.\s]+", "", value)


def repeated(graph: Sequence[Operation]) -> Blocks | None:
    """The equal blocks in a row that hold the most operations; None where there are none."""
    if any("invoke_subgraph" in one.op for one in graph):
        return None  # blocks that are nested regions already
    best: Blocks | None = None
    for distance in _distances(graph):
        start, length = _longest_run(graph, distance)
        count = length // distance + 1
        if count > 1 and (best is None or count * distance > best.count * len(best.operations)):
            best = Blocks(tuple(graph[start : start + distance]), count, len(graph))
    return best


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
