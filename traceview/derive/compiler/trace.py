"""Compiling, steps, blocks, calls and windows of all processes as a Chrome trace.

The object form of the Trace Event Format, which ui.perfetto.dev and chrome://tracing read: complete
events (``ph`` X, ``ts`` and ``dur`` in µs) that nest within a ``pid`` and ``tid``, and metadata
events (``ph`` M) that name and order processes and tracks. ``ts`` counts from the earliest event;
``otherData.zero_unix_us`` is its Unix time.
https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from math import isfinite
from typing import Any

import msgspec

from traceview.derive.compiler.first_calls import parts_of
from traceview.tables import Tables, grouped
from traceview.words.names import PHASES

Row = dict[str, Any]
Process = tuple[str, int | None]
#: Tracks of a process from top to bottom.
TRACKS = (
    *("compile phases", "compile workers", "compile intervals"),
    *("region calls", "steps", "blocks", "profiler windows"),
)
_LANES = 100  # tids of one track


class Span(msgspec.Struct, frozen=True):
    """One bar: µs since the epoch, µs."""

    process: Process
    track: str
    name: str
    category: str
    start_us: float
    duration_us: float
    details: Row = {}


def chrome_trace(tables: Tables) -> dict[str, Any]:
    """The trace as plain data; ``traceEvents`` holds no complete event where nothing was timed."""
    spans = [
        span
        for span in _spans(tables)
        if isfinite(span.start_us) and isfinite(span.duration_us) and span.duration_us >= 0
    ]
    zero = min((span.start_us for span in spans), default=0.0)
    ranks = {(row["pass"], row["pid"]): row["rank"] for row in tables["runs"].iter_rows(named=True)}
    numbers: dict[Process, int] = {}  # a pid for each process: a pass may have had another one's
    for process in dict.fromkeys(span.process for span in spans):
        number = process[1] or 0
        while number in numbers.values():
            number += 1_000_000
        numbers[process] = number
    events: list[Row] = []
    by_track: dict[tuple[Process, str], list[Span]] = defaultdict(list)
    for span in spans:
        by_track[span.process, span.track].append(span)
    for process, number in numbers.items():
        rank = ranks.get(process)
        known = [] if rank is None else [f"rank {rank}"]
        title = " · ".join([process[0], *known, f"pid {process[1]}"])
        events += _named(number, 0, "process", title, number)
        for at, track in enumerate(TRACKS):
            mine = by_track.get((process, track), [])
            events += _drawn(mine, number, 1 + at * _LANES, track, zero)
    events.sort(key=lambda event: (event["ph"] != "M", event.get("ts", 0.0)))
    return {
        "displayTimeUnit": "ms",
        "otherData": {"zero_unix_us": zero, "made_by": "traceview"},
        "traceEvents": events,
    }


def _drawn(spans: list[Span], pid: int, tid: int, track: str, zero: float) -> Iterator[Row]:
    """Events of one track, on as many tids as its spans need to nest."""
    lanes: list[list[float]] = []  # of each the ends of its open spans, the innermost last
    for span in sorted(spans, key=lambda span: (span.start_us, -span.duration_us)):
        end = span.start_us + span.duration_us
        for ends in lanes:
            while ends and ends[-1] <= span.start_us:
                ends.pop()
        lane = next((i for i, ends in enumerate(lanes) if not ends or end <= ends[-1]), None)
        if lane is None:
            if len(lanes) == _LANES:
                continue
            lane = len(lanes)
            lanes.append([])
            name = track if lane == 0 else f"{track} ({lane + 1})"
            yield from _named(pid, tid + lane, "thread", name, tid + lane)
        lanes[lane].append(end)
        yield {
            **{"ph": "X", "pid": pid, "tid": tid + lane},
            **{"name": span.name, "cat": span.category},
            **{"ts": round(span.start_us - zero, 3), "dur": round(span.duration_us, 3)},
            "args": {key: value for key, value in span.details.items() if value is not None},
        }


def _named(pid: int, tid: int, what: str, name: str, order: int) -> list[Row]:
    base = {"ph": "M", "pid": pid, "tid": tid}
    return [
        {**base, "name": f"{what}_name", "args": {"name": name}},
        {**base, "name": f"{what}_sort_index", "args": {"sort_index": order}},
    ]


def _spans(tables: Tables) -> Iterator[Span]:
    phases = tables["compile_phases"].sort("phase_id").iter_rows(named=True)
    for process, rows in grouped(phases, "pass", "pid").items():
        parts = parts_of(rows)
        for row in rows:
            if row["started_us"] is None or row["duration_us"] is None:
                continue  # Triton kernels in workers: torch gives no start
            part = PHASES.get(parts[row["phase_id"]] or "", "compile")
            track = TRACKS[1] if row["aside"] else TRACKS[0]
            more = {"compile_id": row["compile_id"], "self_ms": (row["self_us"] or 0.0) / 1e3}
            times = row["started_us"], row["duration_us"]
            yield Span(process, track, row["name"], part, *times, more)
    for row in _timed(tables, "compile_intervals", "duration_ms"):
        name = f"{row['trigger'] or 'compile'} {row['compile_id'] or ''}".strip()
        yield _span(row, "compile intervals", name, "compile", "duration_ms", "step")
    names = {
        (row["pass"], row["pid"], row["region_id"]): row["name"]
        for row in tables["regions"].iter_rows(named=True)
    }
    for row in _timed(tables, "calls", "host_ms"):
        name = names.get((row["pass"], row["pid"], row["region_id"])) or "region"
        title = f"{name} #{row['call_index']}"
        yield _span(row, "region calls", title, row["stance"], "host_ms", "step", "phase")
    for row in _timed(tables, "steps", "host_ms"):
        yield _span(row, "steps", f"step {row['step']}", row["stance"], "host_ms", "phase")
    for row in _timed(tables, "blocks", "host_ms"):
        name = f"{row['stance']} block, pair {row['pair_index']}"
        yield _span(row, "blocks", name, row["stance"], "host_ms", "steps", "clock", "duration_ms")
    for row in _timed(tables, "profile_windows", "host_ms"):
        name = f"profiler, {row['stance']} ({row['purpose'] or 'time'})"
        yield _span(row, "profiler windows", name, row["stance"], "host_ms", "steps")


def _timed(tables: Tables, name: str, duration: str) -> Iterator[Row]:
    return tables[name].drop_nulls(["started_us", duration]).iter_rows(named=True)


def _span(row: Row, track: str, name: str, category: str | None, duration: str, *more: str) -> Span:
    return Span(
        (row["pass"], row["pid"]),
        track,
        name,
        category or "unknown",
        row["started_us"],
        row[duration] * 1e3,
        {key: row[key] for key in more},
    )
