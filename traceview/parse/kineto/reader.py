"""A trace file into three raw frames: device executions, host calls and operators, memory.

Bounded memory: the columns of some thousand events are held as lists, then become a polars frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from traceview.parse.damage import Damage
from traceview.parse.kineto.columns import Columns, Getter, Texts, decoded
from traceview.parse.kineto.events import NO_ARGS, Event, decode_events
from traceview.parse.kineto.repair import mend
from traceview.parse.kineto.splitter import Slice, UnknownLayout, slices
from traceview.parse.kineto.stream import pieces

#: A longer event than a day is damage: CUPTI has written durations of centuries.
LONGEST_US = 86_400 * 10**6
#: Times up to here are exact to the ns in a float64.
FARTHEST_US = 2**52
_KINDS = {
    "kernel": "kernel",
    "gpu_memcpy": "memcpy",
    "gpu_memset": "memset",
    "cuda_runtime": "call",
    "cuda_driver": "call",
    "cpu_op": "cpu_op",
    "user_annotation": "user_annotation",
}
_GPU = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
_MEMORY = "[memory]"


@dataclass(frozen=True, slots=True)
class RawFrames:
    """Events of a trace by what they are; ``start_ns`` counts from the first of them.

    ``host`` is in order of start, the longer first of two that start at once; its columns that
    ``texts`` names hold numbers.
    """

    device: pl.DataFrame
    host: pl.DataFrame
    memory: pl.DataFrame
    texts: Texts


def _columns(texts: Iterable[str], lists: Iterable[str], numbers: Iterable[str]) -> Columns:
    """Columns of what every event has, and of these arguments (``lists``: JSON kept as text)."""
    return Columns(
        {
            "name": _each("name"),
            "kind": _each("cat", _KINDS.get),
            "tid": _each("tid", str),
            **{name: _each(f"args.{name}", _text) for name in texts},
            **{name: _each(f"args.{name}", bytes) for name in lists},
        },
        {
            "ts": (_each("ts"), pl.Float64),
            "dur": (_each("dur"), pl.Float64),
            **{name: (_each(f"args.{name}"), pl.Int64) for name in numbers},
        },
    )


def _each(attribute: str, change: Callable[[Any], Any] | None = None) -> Getter:
    """Attribute of every event, changed by ``change``."""
    get = attrgetter(attribute)
    if change is None:
        return lambda events: map(get, events)
    return lambda events: map(change, map(get, events))


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def read_raw(path: Path, name: str, damage: Damage) -> RawFrames:
    """The events of ``path``; what cannot be read is counted in ``damage`` under ``name``."""
    ids = ("external_id", "correlation")
    gpu = _columns((), ("grid", "block"), (*ids, "device", "stream", "bytes"))
    inputs = ("input_dims", "input_types", "input_strides", "concrete_inputs")
    host = _columns(("kernel_file",), inputs, (*ids, "sequence", "forward_thread"))
    memory = _columns((), (), ("total_allocated", "allocated", "device_type", "device_id"))
    try:
        for events in _decoded(path, name, damage):
            for event in events:
                event.args = event.args or NO_ARGS
            spans = [event for event in events if event.ph == "X" and event.cat in _KINDS]
            spans = _plausible(spans, name, damage)
            gpu.add([event for event in spans if event.cat in _GPU])
            host.add([event for event in spans if event.cat not in _GPU])
            memory.add([event for event in events if event.name == _MEMORY and event.ph == "i"])
    except UnknownLayout as error:
        damage.count(name, "unknown_format", None, str(error))
    return _frames(gpu, host, memory)


def _decoded(path: Path, name: str, damage: Damage) -> Iterator[list[Event]]:
    """Events slice by slice; a slice that is no JSON is mended event by event."""
    for part in slices(pieces(path, name, damage)):
        if part.data:
            try:
                yield decode_events(b"[" + part.data + b"]")
            except (msgspec.DecodeError, UnicodeDecodeError):
                yield _mended(part, name, damage)
        if not part.whole:
            damage.count(name, "truncated", None, part.data[:200].decode(errors="replace"))


def _mended(part: Slice, name: str, damage: Damage) -> list[Event]:
    kept = []
    for found in mend(part.data):
        if isinstance(found, Event):
            kept.append(found)
        elif part.whole:
            damage.count(name, "bad_json", None, found[:200].decode(errors="replace"))
    return kept


def _plausible(events: list[Event], name: str, damage: Damage) -> list[Event]:
    """``events`` less those, counted, whose times cannot be."""
    kept = []
    for event in events:
        ts, dur = event.ts, event.dur
        if ts is not None and dur is not None and abs(ts) < FARTHEST_US and 0 <= dur <= LONGEST_US:
            kept.append(event)
        else:
            damage.count(name, "bad_event", None, f"{event.name}: ts {ts}, dur {dur}")
    return kept


def _ns(column: str) -> pl.Expr:
    """Whole ns of µs with three decimals.

    Whole and broken µs apart: from 2**42 µs on, which Kineto's clock reaches, ``ts * 1000`` is
    itself rounded, and its last digit is wrong for some values.
    """
    whole = pl.col(column).floor()
    broken = ((pl.col(column) - whole) * 1000).round()
    return whole.cast(pl.Int64) * 1000 + broken.cast(pl.Int64)


def _marks_as_such(host: pl.DataFrame) -> pl.DataFrame:
    """The collector's cheap ranges are written as operators; they are marks like its others."""
    ours = pl.col("name").str.starts_with("traceview ")
    return host.with_columns(kind=pl.when(ours).then(pl.lit("user_annotation")).otherwise("kind"))


def _timed(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(start_ns=_ns("ts"), duration_ns=_ns("dur")).drop("ts", "dur")


def _frames(gpu: Columns, host: Columns, memory: Columns) -> RawFrames:
    """Times counted from the first event on, and the order that ``RawFrames`` promises."""
    device, spans = _timed(gpu.frame()), _timed(host.frame())
    zero = pl.concat([device["start_ns"], spans["start_ns"]]).min()
    shifted = pl.col("start_ns") - pl.lit(zero, dtype=pl.Int64)
    spans = spans.sort("start_ns", "duration_ns", descending=[False, True], maintain_order=True)
    texts = host.texts()
    known = {name: texts.pop(name) for name in ("name", "kind", "tid")}
    return RawFrames(
        decoded(device.with_columns(shifted), gpu.texts()),
        _marks_as_such(decoded(spans.with_columns(shifted), known)),
        memory.frame().sort("ts", nulls_last=True),
        texts,
    )
