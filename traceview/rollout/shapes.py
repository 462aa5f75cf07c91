"""Shapes of calls: a file of them, what varies in them, and buckets to pad them to."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import msgspec

from traceview.errors import UsageError
from traceview.json_errors import NOT_JSON
from traceview.rollout.model import Dimension, Rung

#: Name and sizes of each tensor of a call.
Sizes = tuple[tuple[str, tuple[int, ...]], ...]

MOST_LINES = 1_000_000
MOST_DISTINCT = 10_000
LONGEST_LINE = 1 << 16
MOST_TENSORS = 64
MOST_DIMENSIONS = 16
LARGEST = 1 << 40  # elements of a tensor, and calls that a line stands for
GRAPHS = (1, 2, 3, 4, 6, 8, 12, 16)
#: Numbers of buckets that are tried, by the number of dimensions; all combinations.
_TRIED = {1: GRAPHS, 2: GRAPHS, 3: (1, 2, 3, 4)}


# -- a file of shapes ------------------------------------------------------------------------------


def read_shapes(path: Path) -> Counter[Sizes]:
    """How many calls have which sizes, of a file with one call's shapes a line (docs/rollout.md).

    UsageError with the number of the first line that is none.
    """
    found: Counter[Sizes] = Counter()
    try:
        with path.open("rb") as file:
            for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE + 1), b""), 1):
                try:
                    if number > MOST_LINES:
                        raise ValueError(f"more than {MOST_LINES:,} lines")
                    if len(line) > LONGEST_LINE:
                        raise ValueError(f"longer than {LONGEST_LINE:,} bytes")
                    if line.strip():
                        sizes, calls = _line(line)
                        found[sizes] += calls
                    if len(found) > MOST_DISTINCT:
                        raise ValueError(f"more than {MOST_DISTINCT:,} different shapes")
                except (*NOT_JSON, ValueError) as error:
                    why = str(error) if type(error) is ValueError else "it is not JSON"
                    raise _bad(path, f", line {number}: {why}") from error
    except OSError as error:
        raise _bad(path, f" can't be read ({error.strerror or error})") from error
    if not found:
        raise _bad(path, " has no shapes")
    return found


def _bad(path: Path, what: str) -> UsageError:
    remedy = 'A line is a call: {"ids": [1, 128], "mask": [1, 128]} or [[1, 128], [1, 128]].'
    return UsageError(f"--shapes {path}{what}.", remedy, slug="shapes")


def _line(line: bytes) -> tuple[Sizes, int]:
    data, calls = json.loads(line.decode("utf-8-sig")), 1
    if isinstance(data, dict) and "shapes" in data:
        data, calls = data["shapes"], data.get("count", 1)
    if type(calls) is not int or not 0 < calls < LARGEST:
        raise ValueError(f"count is {str(calls)[:40]}, not a number of calls")
    if isinstance(data, list) and data and all(type(each) is int for each in data):
        data = [data]
    named: list[tuple[str, Any]]
    if isinstance(data, dict):
        named = [(name[:80], sizes) for name, sizes in data.items()]
    elif isinstance(data, list):
        named = [(f"argument {index}", sizes) for index, sizes in enumerate(data)]
    else:
        raise ValueError("neither an array nor an object")
    if not 0 < len(named) <= MOST_TENSORS:
        raise ValueError(f"{len(named)} tensors, not 1 to {MOST_TENSORS}")
    for name, sizes in named:
        whole = isinstance(sizes, list) and all(type(n) is int and n >= 0 for n in sizes)
        if not whole or len(sizes) > MOST_DIMENSIONS or prod(sizes) >= LARGEST:
            raise ValueError(f"{name} has the sizes {str(sizes)[:60]}")
    return tuple((name, tuple(sizes)) for name, sizes in named), calls


# -- what varies -----------------------------------------------------------------------------------

_Place = tuple[int, int]


class Varying(msgspec.Struct, frozen=True):
    """The calls that most have the structure of, and the sizes that change among them.

    ``places``: of each dimension, the tensors and their dimensions that always have its size.
    """

    calls: Counter[Sizes]
    places: tuple[tuple[_Place, ...], ...]
    left_out: int

    def values(self, sizes: Sizes) -> tuple[int, ...]:
        """The size of each dimension in one call."""
        return tuple(sizes[own[0][0]][1][own[0][1]] for own in self.places)

    def padded(self, sizes: Sizes, values: Sequence[int]) -> int:
        """Elements of a call's tensors if its dimensions have these sizes."""
        at = {p: value for own, value in zip(self.places, values, strict=True) for p in own}
        return sum(
            prod(at.get((tensor, dim), size) for dim, size in enumerate(own))
            for tensor, (_, own) in enumerate(sizes)
        )

    def dimensions(self, dynamic: Mapping[int, bool] | None = None) -> tuple[Dimension, ...]:
        """Each with its histogram."""
        tensors = next(iter(self.calls), ())
        made = []
        for index, own in enumerate(self.places):
            where = tuple(f"{tensors[tensor][0]}[{dim}]" for tensor, dim in own)
            sizes: Counter[int] = Counter()
            for each, calls in self.calls.items():
                sizes[self.values(each)[index]] += calls
            known = None if dynamic is None else dynamic.get(index)
            counts = tuple(sorted(sizes.items()))
            made.append(Dimension(name=where[0], where=where, sizes=counts, dynamic=known))
        return tuple(made)

    def dynamic_graphs(self) -> int:
        """Graphs where every size that changes is symbolic: torch keeps 0 and 1 apart."""
        return len({tuple(min(v, 2) for v in self.values(each)) for each in self.calls})

    def options(self, index: int, tried: Sequence[int]) -> list[tuple[int, ...]]:
        """The best buckets of one dimension, of each number that is tried."""
        weights: dict[int, Counter[int]] = {}
        for sizes, number in self.calls.items():
            own = weights.setdefault(self.values(sizes)[index], Counter())
            for tensor, (_, dims) in enumerate(sizes):
                mine = [dim for at, dim in self.places[index] if at == tensor]
                if mine:
                    rest = prod(size for dim, size in enumerate(dims) if dim not in mine)
                    own[len(mine)] += number * rest
        ascending = sorted(weights)
        ordered = [weights[size] for size in ascending]
        return list(dict.fromkeys(tuple(buckets(ascending, ordered, most)) for most in tried))


def structure(sizes: Sizes) -> tuple[tuple[str, int], ...]:
    """Names and numbers of dimensions of the tensors of a call."""
    return tuple((name, len(own)) for name, own in sizes)


def varying(calls: Counter[Sizes]) -> Varying:
    """Which sizes change among calls of the commonest structure, those that are equal together."""
    kinds: Counter[tuple[tuple[str, int], ...]] = Counter()
    for sizes, number in calls.items():
        kinds[structure(sizes)] += number
    usual = max(kinds, key=lambda kind: (kinds[kind], kind))
    mine = Counter({sizes: n for sizes, n in calls.items() if structure(sizes) == usual})
    columns: dict[tuple[int, ...], list[_Place]] = {}
    for tensor, (_, rank) in enumerate(usual):
        for dim in range(rank):
            column = tuple(sizes[tensor][1][dim] for sizes in mine)
            if len(set(column)) > 1:
                columns.setdefault(column, []).append((tensor, dim))
    places = tuple(tuple(own) for own in columns.values())
    return Varying(mine, places, calls.total() - mine.total())


# -- buckets ---------------------------------------------------------------------------------------


def buckets(sizes: Sequence[int], weights: Sequence[Mapping[int, int]], most: int) -> list[int]:
    """At most ``most`` of the ascending ``sizes``, such that padding each one up adds least.

    A call of size s has, for each power p in ``weights`` of s, that many times s to the p elements.
    An exact dynamic program: of the first j sizes in k buckets, the last bucket begins at the i
    that costs least. That i does not decrease with j, so each row is found by halves.
    """
    count, powers = len(sizes), sorted({power for weight in weights for power in weight})
    heads = {p: [0] for p in powers}  # sums of weights up to each size, and of elements
    elements = [0]
    for size, weight in zip(sizes, weights, strict=True):
        for p in powers:
            heads[p].append(heads[p][-1] + weight.get(p, 0))
        elements.append(elements[-1] + sum(n * size**p for p, n in weight.items()))

    def cost(first: int, last: int) -> int:
        """Elements added where sizes ``first`` to ``last`` - 1 are padded to the largest."""
        top = sizes[last - 1]
        filled: int = sum((heads[p][last] - heads[p][first]) * top**p for p in powers)
        return filled - (elements[last] - elements[first])

    best = [cost(0, last) if last else 0 for last in range(count + 1)]
    begins: list[list[int]] = [[0] * (count + 1)]
    for _ in range(min(most, count) - 1):
        row, begin = best[:], begins[-1][:]
        todo = [(1, count, 0, count)]
        while todo:
            low, high, left, right = todo.pop()
            if low > high:
                continue
            middle = (low + high) // 2
            found = min(
                (best[i] + cost(i, middle), i) for i in range(left, min(middle - 1, right) + 1)
            )
            row[middle], begin[middle] = found
            todo += [(low, middle - 1, left, found[1]), (middle + 1, high, found[1], right)]
        best = row
        begins.append(begin)
    chosen, last = [], count
    for begin in reversed(begins):
        if last:
            chosen.append(sizes[last - 1])
            last = begin[last]
    return chosen[::-1]


def ladder(traffic: Varying) -> tuple[Rung, ...]:
    """Sets of buckets for more and more graphs, each with the least padding for that many.

    The buckets of one dimension are the best ones for it alone; where several dimensions vary, all
    combinations of their numbers are compared. None where more than three do.
    """
    tried = _TRIED.get(len(traffic.places), ())
    names = [dimension.name for dimension in traffic.dimensions()]
    options = [traffic.options(index, tried) for index in range(len(names))]
    calls = [(sizes, traffic.values(sizes), n) for sizes, n in traffic.calls.items()]
    needed = sum(traffic.padded(sizes, values) * n for sizes, values, n in calls)
    found: list[Rung] = []
    for chosen in product(*options) if tried else ():
        used: set[tuple[int, ...]] = set()
        filled = 0
        for sizes, values, number in calls:
            up = tuple(own[bisect_left(own, v)] for own, v in zip(chosen, values, strict=True))
            used.add(up)
            filled += traffic.padded(sizes, up) * number
        padding = 1 - needed / filled if filled else 0.0
        own = dict(zip(names, chosen, strict=True))
        found.append(Rung(graphs=len(used), buckets=own, padding=padding))
    rungs: list[Rung] = []
    for most in GRAPHS:
        fitting = [rung for rung in found if rung.graphs <= most]
        best = min(fitting, key=lambda rung: (rung.padding, rung.graphs), default=None)
        if best is not None and best not in rungs:
            rungs.append(best)
    return tuple(rungs)
