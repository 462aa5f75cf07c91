"""Profiler traces (Kineto JSON, packed or not) to tables kernels, kernel_launches, cpu_ops, memory,
traces and, where the user's lines are marked, line_ops.

splitter     slices of whole events, in any layout
events       events decoded, repaired, and put apart by what they are
columns      events of one sort as columns
rest         the second half of a large trace, read by another process
reader       a trace to raw frames
nesting      which host event lies in which
linking      raw frames to tables
categories   kinds of work
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from traceview.inputs.streams import Stream
from traceview.parse.collected.events import Event, read_processes
from traceview.parse.damage import Damage
from traceview.parse.files import opened
from traceview.parse.kineto.categories import categorize
from traceview.parse.kineto.linking import line_ops, link, memory_rows
from traceview.parse.kineto.reader import RawFrames, read_raw
from traceview.parse.kineto.rest import Rest, rest_begun
from traceview.run import PassRecord, Run
from traceview.tables import conform, from_rows, spec_of
from traceview.torchtext import marks

__all__ = ["Frames", "categorize", "read_pass", "read_stream", "read_trace", "rest_begun"]

Frames = dict[str, pl.DataFrame]
Batches = Iterator[tuple[str, pl.DataFrame]]


class _Head(msgspec.Struct, frozen=True):
    """What every row of one window says of itself."""

    pass_name: str
    rank: int | None
    pid: int | None
    stance: str


class Window(msgspec.Struct, frozen=True):
    """One trace file: where it is, what it is named in tables, and whose it is.

    ``line_files``: of a lines window, the files by the index that its marks have; else None.
    """

    path: Path
    name: str
    pid: int
    rank: int | None
    stance: str
    line_files: tuple[str | None, ...] | None = None


def read_stream(
    stream: Stream,
    name: str,
    damage: Damage,
    *,
    pass_name: str = "logs",
    rank: int | None = None,
    stance: str | None = None,
    rest: Rest | None = None,
) -> Batches:
    """Tables of one trace from anywhere, in batches of rows, and its row of table traces.

    ``rest`` is another process that reads the same trace from its middle on. ``rank`` and
    ``stance`` are what is known from elsewhere. The trace's own rank counts before; without a
    stance, a trace with torch.compile's marks is compiled.
    """
    raw = read_raw(stream, name, damage, rest)
    head = _Head(
        pass_name,
        rank if raw.about.rank is None else raw.about.rank,
        raw.pid,
        stance or _stance(raw.host.whats["name"]),
    )
    yield "traces", _trace(raw, head, name)
    yield from _tables(raw, head)


def read_trace(path: Path, stance: str, damage_name: str, damage: Damage) -> Frames:
    """Tables of one trace file from anywhere; damage is counted under ``damage_name``."""
    return _read(path, _Head("logs", None, None, stance), damage_name, damage)


def read_pass(run: Run, record: PassRecord, damage: Damage) -> Frames:
    """Tables of a pass's profiler windows; no table at all if it had none.

    One window per rank, stance and purpose is read: the last that the collector wrote. A lines
    window gives line_ops alone: its marks make Python slow.
    """
    parts: dict[str, list[pl.DataFrame]] = {}
    for window in windows(run, record):
        if not window.path.is_file():
            damage.count(window.name, "missing", None, "the collector wrote of it, it is not there")
            continue
        head = _Head(record.name, window.rank, window.pid, window.stance)
        if window.line_files is None:
            read = _read(window.path, head, window.name, damage)
        else:
            raw = _raw(window.path, window.name, damage)
            read = {"line_ops": _headed("line_ops", line_ops(raw, window.line_files), head)}
        for name, frame in read.items():
            parts.setdefault(name, []).append(frame)
    return {name: pl.concat(frames) for name, frames in parts.items()}


def windows(run: Run, record: PassRecord) -> list[Window]:
    """The last trace of each rank, stance and purpose; the processes stand in order of their start.

    A second process of the same rank (a forked worker that compiles too) is left out: its times
    and row numbers have nothing to do with the first one's. Damage to the events is counted by
    their own reader.
    """
    folder = run.raw(record)
    found: dict[tuple[int | None, str, bool], Window] = {}
    for process in read_processes(folder, record.raw, Damage()):
        for event in process.of("profile"):
            file, stance = event.get("file"), event.get("stance")
            if not isinstance(file, str) or not isinstance(stance, str):
                continue
            path = folder / file
            if not path.resolve().is_relative_to(folder.resolve()):
                continue
            lines = _line_files(event)
            key = (process.rank, stance, lines is None)
            if key not in found or found[key].pid == process.pid:
                name = f"{record.raw}/{file}"
                found[key] = Window(path, name, process.pid, process.rank, stance, lines)
    return list(found.values())


def _line_files(event: Event) -> tuple[str | None, ...] | None:
    if event.get("purpose") != "lines":
        return None
    files = event.get("line_files")
    named = files if isinstance(files, list) else []
    return tuple(file if isinstance(file, str) else None for file in named)


def _read(path: Path, head: _Head, name: str, damage: Damage) -> Frames:
    parts: dict[str, list[pl.DataFrame]] = {}
    for table, batch in _tables(_raw(path, name, damage), head):
        parts.setdefault(table, []).append(batch)
    return {table: pl.concat(batches) for table, batches in parts.items()}


def _raw(path: Path, name: str, damage: Damage) -> RawFrames:
    with rest_begun(path) as rest, opened(path) as stream:
        return read_raw(stream, name, damage, rest)


def _tables(raw: RawFrames, head: _Head) -> Batches:
    for table, batch in link(raw):
        yield table, _headed(table, batch, head)
    if rows := memory_rows(raw.memory):
        own = {"pass": head.pass_name, "rank": head.rank, "pid": head.pid, "stance": head.stance}
        yield "memory", from_rows("memory", ({**own, **row} for row in rows))


def _stance(names: pl.Series) -> str:
    compiled = (marks.REGION, marks.GRAPH)
    return "compiled" if any(name.startswith(compiled) for name in names.drop_nulls()) else "eager"


def _trace(raw: RawFrames, head: _Head, name: str) -> pl.DataFrame:
    """The row of table traces."""
    frames = [frame for frame in (raw.host.rows, raw.device.rows) if frame.height]
    ends: list[Any] = [(frame["start_ns"] + frame["duration_ns"]).max() for frame in frames]
    row = {
        "pass": head.pass_name,
        "rank": head.rank,
        "name": name,
        "pid": head.pid,
        "stance": head.stance,
        "device": raw.about.device,
        "world_size": raw.about.world_size,
        "zero_ns": raw.about.unix_ns(raw.zero_ns),
        "span_ns": max(ends, default=None),
        "events": sum(frame.height for frame in frames),
        "other_processes": raw.others[0],
        "other_events": raw.others[1],
    }
    return from_rows("traces", [row])


def _headed(table: str, frame: pl.DataFrame, head: _Head) -> pl.DataFrame:
    named = frame.with_columns(
        pl.lit(head.pass_name).alias("pass"),
        pl.lit(head.rank, dtype=pl.Int32).alias("rank"),
        pl.lit(head.stance).alias("stance"),
    )
    return conform(spec_of(table), named)
