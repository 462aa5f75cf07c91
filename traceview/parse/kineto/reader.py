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
from traceview.parse.kineto.events import NO_ARGS, Event, decode_events
from traceview.parse.kineto.repair import mend
from traceview.parse.kineto.splitter import Slice, UnknownLayout, slices
from traceview.parse.kineto.stream import pieces

#: A longer event than a day is damage: CUPTI has written durations of centuries.
LONGEST_NS = 86_400 * 10**9
_ROWS_PER_FRAME = 16_384
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
_COMMON: dict[str, Any] = {
    "name": pl.String, "cat": pl.String, "tid": pl.String, "ts": pl.Float64, "dur": pl.Float64,
}  # fmt: skip
_GPU_ARGS: dict[str, Any] = {
    "external_id": pl.Int64, "correlation": pl.Int64, "device": pl.Int32, "stream": pl.Int64,
    "bytes": pl.Int64, "grid": pl.String, "block": pl.String,
}  # fmt: skip
_HOST_ARGS: dict[str, Any] = {
    "external_id": pl.Int64, "correlation": pl.Int64, "sequence": pl.Int64,
    "forward_thread": pl.Int64, "input_dims": pl.String, "input_types": pl.String,
    "kernel_file": pl.String,
}  # fmt: skip
_MEMORY_ARGS: dict[str, Any] = {
    "total_allocated": pl.Int64, "allocated": pl.Int64, "device_type": pl.Int64,
    "device_id": pl.Int64,
}  # fmt: skip
_RAW = frozenset({"grid", "block", "input_dims", "input_types"})


@dataclass(frozen=True, slots=True)
class RawFrames:
    """Events of a trace by what they are; ``start_ns`` counts from the first of them."""

    device: pl.DataFrame
    host: pl.DataFrame
    memory: pl.DataFrame


class _Columns:
    """Rows of one sort of event, gathered column by column."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._schema = {**_COMMON, **arguments}
        self._columns: dict[str, list[Any]] = {name: [] for name in self._schema}
        self._getters = {name: attrgetter(name) for name in arguments}
        self._frames: list[pl.DataFrame] = []

    def add(self, events: list[Event]) -> None:
        columns = self._columns
        for name in _COMMON:
            columns[name] += map(attrgetter(name), events)
        arguments = [event.args or NO_ARGS for event in events]
        for name, get in self._getters.items():
            values: Iterable[Any] = map(get, arguments)
            columns[name] += map(_text, values) if name in _RAW else values
        if len(columns["ts"]) >= _ROWS_PER_FRAME:
            self._flush()

    def frame(self) -> pl.DataFrame:
        self._flush()
        return pl.concat(self._frames).rechunk()

    def _flush(self) -> None:
        columns = self._columns
        columns["tid"] = [str(value) for value in columns["tid"]]
        series = [_series(name, columns[name], dtype) for name, dtype in self._schema.items()]
        self._frames.append(pl.DataFrame(series))
        self._columns = {name: [] for name in self._schema}


def read_raw(path: Path, name: str, damage: Damage) -> RawFrames:
    """The events of ``path``; what cannot be read is counted in ``damage`` under ``name``."""
    gpu, host, memory = _Columns(_GPU_ARGS), _Columns(_HOST_ARGS), _Columns(_MEMORY_ARGS)
    try:
        for events in _decoded(path, name, damage):
            spans = [event for event in events if event.ph == "X" and event.cat in _KINDS]
            gpu.add([event for event in spans if event.cat in _GPU])
            host.add([event for event in spans if event.cat not in _GPU])
            memory.add([event for event in events if event.name == _MEMORY and event.ph == "i"])
    except UnknownLayout as error:
        damage.count(name, "unknown_format", None, str(error))
    count = _bad_times(name, damage)
    return _zeroed(count(gpu.frame()), count(host.frame()), memory.frame())


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


def _bad_times(name: str, damage: Damage) -> Callable[[pl.DataFrame], pl.DataFrame]:
    """A step that gives integer times and leaves out, counted, rows whose times cannot be."""

    def times(frame: pl.DataFrame) -> pl.DataFrame:
        plausible = (
            pl.col("ts").is_finite()
            & pl.col("ts").abs().lt(2**52)
            & pl.col("dur").is_between(0, LONGEST_NS / 1000)
        ).fill_null(False)
        for row in frame.filter(~plausible).select("name", "ts", "dur").iter_rows():
            damage.count(name, "bad_event", None, "{}: ts {}, dur {}".format(*row))
        return frame.filter(plausible).with_columns(
            kind=pl.col("cat").replace_strict(_KINDS, return_dtype=pl.String),
            start_ns=_ns("ts"),
            duration_ns=_ns("dur"),
        )

    return times


def _ns(column: str) -> pl.Expr:
    """Whole ns of µs with three decimals.

    Whole and broken µs apart: from 2**42 µs on, which Kineto's clock reaches, ``ts * 1000`` is
    itself rounded, and its last digit is wrong for some values.
    """
    whole = pl.col(column).floor()
    broken = ((pl.col(column) - whole) * 1000).round()
    return whole.cast(pl.Int64) * 1000 + broken.cast(pl.Int64)


def _zeroed(device: pl.DataFrame, host: pl.DataFrame, memory: pl.DataFrame) -> RawFrames:
    starts = pl.concat([device["start_ns"], host["start_ns"]])
    zero = pl.lit(starts.min(), dtype=pl.Int64)
    shifted = [
        frame.with_columns(pl.col("start_ns") - zero).drop("ts", "dur", "cat")
        for frame in (device, host)
    ]
    return RawFrames(shifted[0], shifted[1], memory.sort("ts", nulls_last=True))


def _text(raw: msgspec.Raw) -> str | None:
    return bytes(raw).decode(errors="replace") or None


def _series(name: str, values: list[Any], dtype: Any) -> pl.Series:  # noqa: ANN401
    return pl.Series(name, values, dtype=dtype, strict=False)
