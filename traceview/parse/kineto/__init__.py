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
from traceview.parse.collected.events import read_processes
from traceview.parse.collected.replays import profiled
from traceview.parse.damage import Damage
from traceview.parse.files import opened
from traceview.parse.kineto.categories import categorize
from traceview.parse.kineto.linking import line_ops, link, memory_rows
from traceview.parse.kineto.reader import RawFrames, read_raw
from traceview.parse.kineto.rest import Rest, rest_begun
from traceview.parse.merge import Frames, gathered
from traceview.run import PassRecord, Run
from traceview.tables import conform, from_rows, spec_of
from traceview.torchtext import marks

__all__ = ["categorize", "read_pass", "read_stream", "rest_begun"]

Batches = Iterator[tuple[str, pl.DataFrame]]
_HEAD = ("pass", "rank", "stance", "anchor_region_id")  # columns of every table of a window


class Window(msgspec.Struct, frozen=True):
    """One trace file: where it is, what it is named in tables, and whose it is.

    ``anchor``: the region whose calls are its steps; None: an optimizer's steps, or not known.
    ``line_files``: of a lines window, the files by the index that its marks have; else None.
    """

    path: Path
    name: str
    pid: int
    rank: int | None
    stance: str
    anchor: int | None = None
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
    if stance is None:
        names, compiled = raw.host.whats["name"].drop_nulls(), (marks.REGION, marks.GRAPH)
        stance = "compiled" if any(name.startswith(compiled) for name in names) else "eager"
    own_rank = raw.about.rank
    head = _head(pass_name, rank if own_rank is None else own_rank, raw.pid, stance)
    frames = [frame for frame in (raw.host.rows, raw.device.rows) if frame.height]
    ends: list[Any] = [(frame["start_ns"] + frame["duration_ns"]).max() for frame in frames]
    trace = {
        **head,
        "name": name,
        "device": raw.about.device,
        "world_size": raw.about.world_size,
        "zero_ns": raw.about.unix_ns(raw.zero_ns),
        "span_ns": max(ends, default=None),
        "events": sum(frame.height for frame in frames),
        "other_processes": raw.others[0],
        "other_events": raw.others[1],
    }
    del frames
    yield "traces", from_rows("traces", [trace])
    yield from _tables(raw, head, {"anchor_region_id": None})


def read_pass(run: Run, record: PassRecord, damage: Damage) -> Frames:
    """Tables of a pass's profiler windows; no table at all if it had none.

    One window per rank, kind of step, stance and purpose is read: the last that the collector
    wrote. A lines window gives line_ops alone: its marks make Python slow.
    """
    read: list[tuple[str, pl.DataFrame]] = []
    for window in windows(run, record):
        if not window.path.is_file():
            damage.count(window.name, "missing", None, "the collector wrote of it, it is not there")
            continue
        head = _head(record.name, window.rank, window.pid, window.stance)
        anchor = {"anchor_region_id": window.anchor}
        with rest_begun(window.path) as rest, opened(window.path) as stream:
            raw = read_raw(stream, window.name, damage, rest)
        if window.line_files is None:
            read += _tables(raw, head, anchor)
        else:
            ops = line_ops(raw, window.line_files)
            read.append(("line_ops", _headed("line_ops", ops, head | anchor)))
    return gathered(read)


def windows(run: Run, record: PassRecord) -> list[Window]:
    """The last trace of each rank, kind of step, stance and purpose; processes as they started.

    A second process of the same rank (a forked worker that compiles too) is left out: its times
    and row numbers have nothing to do with the first one's. Damage to the events is counted by
    their own reader.
    """
    folder = run.raw(record)
    found: dict[tuple[int | None, int | None, str, bool], Window] = {}
    processes: dict[int | None, int] = {}
    for process in read_processes(folder, record.raw, Damage()):
        for event in profiled(process):
            file, stance = event.get("file"), event.get("stance")
            if not isinstance(file, str) or not isinstance(stance, str):
                continue
            path = folder / file
            if not path.resolve().is_relative_to(folder.resolve()):
                continue
            lines = None
            if event.get("purpose") == "lines":
                named = event.get("line_files")
                files = named if isinstance(named, list) else []
                lines = tuple(each if isinstance(each, str) else None for each in files)
            of = event.get("anchor_region_id")
            anchor = of if isinstance(of, int) else None
            if processes.setdefault(process.rank, process.pid) == process.pid:
                name = f"{record.raw}/{file}"
                key = process.rank, anchor, stance, lines is None
                found[key] = Window(path, name, process.pid, process.rank, stance, anchor, lines)
    return list(found.values())


def _head(pass_name: str, rank: int | None, pid: int | None, stance: str) -> dict[str, Any]:
    """What every row of one window says of itself."""
    return {"pass": pass_name, "rank": rank, "pid": pid, "stance": stance}


def _tables(raw: RawFrames, head: dict[str, Any], anchor: dict[str, int | None]) -> Batches:
    for table, batch in link(raw):
        yield table, _headed(table, batch, head | anchor)
    if rows := memory_rows(raw.memory):
        yield "memory", from_rows("memory", ({**head, **row} for row in rows))


def _headed(table: str, frame: pl.DataFrame, head: dict[str, Any]) -> pl.DataFrame:
    spec = spec_of(table)
    own = (pl.lit(head[name], spec.polars_schema[name]).alias(name) for name in _HEAD)
    return conform(spec, frame.with_columns(own))
