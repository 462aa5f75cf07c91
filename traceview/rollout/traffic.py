"""The shapes of a run's own calls, and those of a file compared with what this run has compiled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from pathlib import Path

import msgspec

from traceview.rollout.model import Coverage, Shape, Traffic
from traceview.rollout.reading import Called, Recorded, shapes_of
from traceview.rollout.shapes import Sizes, Varying, ladder, structure, varying

#: Shapes that are listed of one callable.
MOST_LISTED = 40
_MISSING = 10


class Known(msgspec.Struct, frozen=True):
    """What one process that served compiled shows of the shapes that it has code for.

    ``dynamic``: dimensions (by their places) of which a new size was served without a compile. Not
    known where such a call may have run in eager: after a recompile limit, or in another stance.
    """

    traffic: Varying
    served: Collection[Sizes]
    dynamic: frozenset[int] | None

    def covers(self, sizes: Sizes) -> bool:
        """Whether only dynamic dimensions, within their range, tell it from what was served."""
        if not self.dynamic or structure(sizes) != structure(next(iter(self.traffic.calls))):
            return False
        values = self.traffic.values(sizes)
        if not self._alike(sizes, values):
            return False
        fixed = [index for index in range(len(values)) if index not in self.dynamic]
        near = [
            own
            for each in self.served
            if each in self.traffic.calls
            for own in [self.traffic.values(each)]
            if all(own[index] == values[index] for index in fixed)
        ]
        return bool(near) and all(
            max(2, min(own[index] for own in near))
            <= values[index]
            <= max(own[index] for own in near)
            for index in self.dynamic
        )

    def _alike(self, sizes: Sizes, values: tuple[int, ...]) -> bool:
        """Whether what never varied here is as it was, and what was equal still is."""
        usual = next(iter(self.traffic.calls))
        at = {p: v for own, v in zip(self.traffic.places, values, strict=True) for p in own}
        return all(
            size == at.get((tensor, dim), usual[tensor][1][dim])
            for tensor, (_, own) in enumerate(sizes)
            for dim, size in enumerate(own)
        )


def known_of(recorded: Recorded, called: Called) -> Known | None:
    """What the calls of one callable show; None without a call whose sizes are known."""
    by_shape = called.by_shape()
    if not by_shape:
        return None
    traffic = varying(Counter({sizes: len(calls) for sizes, calls in by_shape.items()}))
    end = recorded.process
    if end.stance != "default" or end.limit_hits is None or end.limit_hits:
        compiled = {s for s, calls in by_shape.items() if any(call.compiles for call in calls)}
        return Known(traffic, compiled, None)
    firsts = sorted(
        (calls[0].index, calls[0].compiles, traffic.values(sizes))
        for sizes, calls in by_shape.items()
        if sizes in traffic.calls
    )
    seen: list[set[int]] = [set() for _ in traffic.places]
    dynamic = set()
    for _, compiles, values in firsts:
        fresh = [index for index, value in enumerate(values) if value not in seen[index]]
        if seen and not compiles:
            dynamic.update(fresh)
        for index, value in enumerate(values):
            seen[index].add(value)
    return Known(traffic, set(by_shape), frozenset(dynamic))


def of_run(compiled: Called, eager: Called | None, known: Known) -> Traffic:
    """Of the run's own calls of one callable."""
    dynamic = None
    if known.dynamic is not None:
        places = range(len(known.traffic.places))
        dynamic = {index: index in known.dynamic for index in places}
    shapes = shapes_of(compiled, eager)
    return _traffic(
        known.traffic,
        dynamic,
        tuple(shapes[:MOST_LISTED]),
        distinct=len(shapes),
        region_id=compiled.region_id,
    )


def of_file(path: Path, calls: Counter[Sizes], known: Known | None) -> Traffic:
    """Of a file of shapes, compared with what this run has compiled."""
    coverage = None
    if known is not None:
        names = [name for name, _ in next(iter(known.traffic.calls))]
        seen = dynamic = 0
        missing: list[tuple[int, Sizes]] = []
        for sizes, number in calls.items():
            own = _as_called(sizes, names)
            if own in known.served:
                seen += number
            elif known.covers(own):
                dynamic += number
            else:
                missing.append((number, sizes))
        missing.sort(key=lambda pair: (-pair[0], pair[1]))
        coverage = Coverage(
            seen=seen / calls.total(),
            dynamic=dynamic / calls.total(),
            missing=tuple(Shape(tensors=s, calls=n) for n, s in missing[:_MISSING]),
        )
    common = calls.most_common(MOST_LISTED)
    listed = tuple(Shape(tensors=sizes, calls=number) for sizes, number in common)
    return _traffic(
        varying(calls), None, listed, distinct=len(calls), file=str(path), coverage=coverage
    )


def _as_called(sizes: Sizes, names: list[str]) -> Sizes:
    """A line of the file as the run names and orders tensors, where it can be matched."""
    given = dict(sizes)
    if set(given) == set(names):
        return tuple((name, given[name]) for name in names)
    if len(sizes) == len(names) and all(name == f"argument {n}" for n, name in enumerate(given)):
        return tuple((name, own) for name, (_, own) in zip(names, sizes, strict=True))
    return sizes


def _traffic(
    found: Varying,
    dynamic: dict[int, bool] | None,
    shapes: tuple[Shape, ...],
    *,
    distinct: int,
    region_id: int | None = None,
    file: str | None = None,
    coverage: Coverage | None = None,
) -> Traffic:
    return Traffic(
        file=file,
        region_id=region_id,
        calls=found.calls.total() + found.left_out,
        distinct=distinct,
        dimensions=found.dimensions(dynamic),
        static_graphs=len(found.calls),
        dynamic_graphs=found.dynamic_graphs(),
        rungs=ladder(found),
        shapes=shapes,
        left_out=found.left_out,
        coverage=coverage,
    )
