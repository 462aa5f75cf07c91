"""Profiler traces (Kineto JSON, plain or .gz) to tables kernels, kernel_launches, cpu_ops and,
where the user's lines are marked, line_ops.

stream       bytes of the file, unpacked, cut files too
splitter     slices of whole events, in any layout
repair       events that are no valid JSON
columns      events to columns
reader       events to raw frames
nesting      which host event lies in which
steps        marks of steps
linking      raw frames to tables
lines        raw frames of a lines window to table line_ops
categories   kinds of work
memory       peaks of a window
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from traceview.parse.damage import Damage
from traceview.parse.kineto.categories import categorize
from traceview.parse.kineto.lines import line_ops
from traceview.parse.kineto.linking import link
from traceview.parse.kineto.memory import memory_rows
from traceview.parse.kineto.reader import read_raw
from traceview.parse.kineto.windows import windows
from traceview.run import PassRecord, Run
from traceview.tables import conform, from_rows, spec_of

__all__ = ["Frames", "categorize", "read_pass", "read_trace"]

Frames = dict[str, pl.DataFrame]
_TABLES = ("kernels", "kernel_launches", "cpu_ops")


@dataclass(frozen=True, slots=True)
class _Head:
    """What every row of one window says of itself."""

    pass_name: str
    rank: int | None
    pid: int | None
    stance: str


def read_pass(run: Run, record: PassRecord, damage: Damage) -> Frames:
    """Tables of a pass's profiler windows; no table at all if it had none.

    One window per rank, stance and purpose is read: the last that the collector wrote. A lines
    window tells of line_ops alone: its marks make Python slow.
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
            raw = read_raw(window.path, window.name, damage)
            read = {"line_ops": _headed("line_ops", line_ops(raw, window.line_files), head)}
        for name, frame in read.items():
            parts.setdefault(name, []).append(frame)
    return {name: pl.concat(frames) for name, frames in parts.items()}


def read_trace(path: Path, stance: str, damage_name: str, damage: Damage) -> Frames:
    """Tables of one trace file from anywhere; damage is counted under ``damage_name``."""
    return _read(path, _Head("logs", None, None, stance), damage_name, damage)


def _read(path: Path, head: _Head, name: str, damage: Damage) -> Frames:
    raw = read_raw(path, name, damage)
    tables = link(raw)
    frames = {table: _headed(table, tables[table], head) for table in _TABLES}
    own: dict[str, Any] = {
        "pass": head.pass_name, "rank": head.rank, "pid": head.pid, "stance": head.stance,
    }  # fmt: skip
    if rows := memory_rows(raw.memory):
        frames["memory"] = from_rows("memory", ({**own, **row} for row in rows))
    return frames


def _headed(table: str, frame: pl.DataFrame, head: _Head) -> pl.DataFrame:
    named = frame.with_columns(
        pl.lit(head.pass_name).alias("pass"),
        pl.lit(head.rank, dtype=pl.Int32).alias("rank"),
        pl.lit(head.stance).alias("stance"),
    )
    return conform(spec_of(table), named)
