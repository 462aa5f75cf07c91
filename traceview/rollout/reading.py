"""The events of a process that served (docs/run-folder.md), read into what its calls took."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from traceview.parse.collected.events import Process as Events
from traceview.parse.collected.events import is_count, read_processes
from traceview.parse.damage import Damage
from traceview.rollout.model import Latency, Process, ProcessName, Served, Shape
from traceview.rollout.shapes import Sizes

#: Of calls whose shapes, or whose way, were too many to tell apart.
OTHERS = -1


class Call(msgspec.Struct, frozen=True):
    """One outermost call. ``ms``: by the device's clock where there is one."""

    index: int
    ms: float
    compiles: int
    shape: int
    way: int


class Called(msgspec.Struct, frozen=True):
    """What one process recorded of one compiled callable, in the order of its calls."""

    region_id: int
    name: str
    clock: str
    fullgraph: bool
    calls: tuple[Call, ...]
    shapes: Mapping[int, Sizes]
    ways: Mapping[int, str]

    def warmup(self, asked: int | None) -> int:
        """How many calls are warm-up: as asked, else those before the usual way to it began.

        At least the first one. A way is the user's stack; the usual one is that of most calls.
        """
        if asked is not None:
            return asked
        ways = [self.ways.get(call.way, "") for call in self.calls]
        usual = max(Counter(ways).items(), key=lambda pair: pair[1], default=("", 0))[0]
        return max(1, ways.index(usual)) if ways else 1

    def served(self, process: ProcessName, asked: int | None) -> Served:
        """Its figures, for a warm-up of ``asked`` calls (None: the script's own)."""
        warm = self.warmup(asked)
        later = self.calls[warm:]
        recompiles = sum(call.compiles for call in self.calls[1:])
        return Served(
            process=process,
            region_id=self.region_id,
            name=self.name,
            clock=self.clock,
            calls=len(self.calls),
            shapes=len({call.shape for call in self.calls}),
            first_ms=self.calls[0].ms,
            warmup_calls=min(warm, len(self.calls)),
            warmup_seconds=sum(call.ms for call in self.calls[:warm]) / 1e3,
            after_warmup=latency(call.ms for call in later),
            without_compiles=latency(call.ms for call in later if not call.compiles),
            recompiles=recompiles,
            per_thousand=1000 * recompiles / len(self.calls),
            late_calls=sum(1 for call in later if call.compiles),
            longest_late_ms=max((call.ms for call in later if call.compiles), default=None),
        )

    def by_shape(self) -> Mapping[Sizes, list[Call]]:
        """The calls of each combination of sizes, in order."""
        found: dict[Sizes, list[Call]] = {}
        for call in self.calls:
            if (sizes := self.shapes.get(call.shape)) is not None:
                found.setdefault(sizes, []).append(call)
        return found


class Recorded(msgspec.Struct, frozen=True):
    """One process that served; of several ranks the first one."""

    process: Process
    called: tuple[Called, ...] = ()


def latency(times_ms: Iterable[float]) -> Latency:
    """Percentiles by nearest rank: a time that a call took, not one between two."""
    times = sorted(times_ms)

    def at(share: float) -> float | None:
        return times[max(0, math.ceil(share * len(times)) - 1)] if times else None

    return Latency(calls=len(times), p50_ms=at(0.5), p95_ms=at(0.95), p99_ms=at(0.99), max_ms=at(1))


def shapes_of(compiled: Called, eager: Called | None) -> list[Shape]:
    """Every combination of sizes, the commonest first; medians of calls that did not compile."""
    others = eager.by_shape() if eager is not None else {}
    rows = [
        Shape(
            tensors=sizes,
            calls=len(calls),
            compiled_calls=sum(1 for call in calls if call.compiles),
            compiled_ms=_median(call.ms for call in calls if not call.compiles),
            eager_ms=_median(call.ms for call in others.get(sizes, ())),
        )
        for sizes, calls in compiled.by_shape().items()
    ]
    return sorted(rows, key=lambda row: (-row.calls, row.tensors))


def _median(values: Iterable[float]) -> float | None:
    known = list(values)
    return median(known) if known else None


def read_served(raw: Path, name: ProcessName, ended: str) -> Recorded:
    """What the process with the raw folder ``raw`` left, of several ranks the first one."""
    processes = read_processes(raw, raw.name, Damage())
    events = min(
        (each for each in processes if each.of("served") or each.of("region")),
        key=lambda each: each.rank or 0,
        default=None,
    )
    if events is None:
        return Recorded(Process(name=name, ended=ended))
    error = next(iter(events.of("error")), None)
    said = f"{error.get('type')}: {error.get('message')}" if error else None
    try:
        end = {k: v for k, v in events.last("served_end").items() if k in Process.__struct_fields__}
        process = msgspec.convert({**end, "name": name, "ended": ended, "error": said}, Process)
    except msgspec.ValidationError:  # as if it had not been written
        process = Process(name=name, ended=ended, error=said)
    return Recorded(process, tuple(_called(events)))


def _called(events: Events) -> Iterable[Called]:
    regions = {each.get("region_id"): each for each in events.of("region")}
    ways = {
        number: str(each.get("stack"))
        for each in events.of("served_way")
        if is_count(number := each.get("way"))
    }
    shapes: dict[int, dict[int, Sizes]] = {}
    for each in events.of("served_shape"):
        try:
            row = msgspec.convert(each, _Shape)
        except msgspec.ValidationError:
            continue
        shapes.setdefault(row.region_id, {})[row.shape] = row.tensors
    rows: dict[int, list[tuple[Call, bool]]] = {}
    for batch in events.of("served"):
        region, own = batch.get("region_id"), batch.get("rows")
        if is_count(region) and isinstance(own, list):
            rows.setdefault(region, []).extend(filter(None, map(_call, own)))
    for number, found in sorted(rows.items()):
        if not found:
            continue
        region = regions.get(number) or {}
        yield Called(
            number,
            str(region.get("name") or f"callable {number}"),
            "device" if any(timed for _, timed in found) else "host",
            region.get("fullgraph") is True,
            tuple(call for call, _ in sorted(found, key=lambda pair: pair[0].index)),
            shapes.get(number, {}),
            ways,
        )


class _Shape(msgspec.Struct):
    region_id: int
    shape: int
    tensors: Sizes


def _call(row: Any) -> tuple[Call, bool] | None:  # noqa: ANN401 - any JSON value
    """A row of ``served``, and whether it has the device's time; None if it is damaged."""
    try:
        index, _, host, device, compiles, shape, way = msgspec.convert(
            row, tuple[int, float, float, float | None, int, int, int]
        )
    except msgspec.ValidationError:
        return None
    timed = device is not None
    return Call(index, device if device is not None else host, compiles, shape, way), timed
