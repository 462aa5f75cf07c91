"""Where a step's time goes on a device: busy by category, idle by what the device waited for."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

import polars as pl

from traceview.derive.intervals import Interval, clip, length, merge, shared_time
from traceview.derive.windows import Window

#: Causes of a gap, see ``_cause``.
LAUNCH_BOUND = "idle_launch_bound"
IN_FLIGHT = "idle_launch_in_flight"
SYNC = "idle_sync"
DEVICE = "idle_device"
IN_GRAPH = "idle_inside_graph"
UNLINKED = "idle_unlinked"
NOTHING_LEFT = "idle_no_more_work"
#: From the window's start, when the device had been drained, to its first work. Steps that follow
#: another have no such gap.
WINDOW_START = "idle_window_start"


@dataclass(frozen=True, slots=True)
class Share:
    """One row of the accounting, for a whole window: ns on ``clock``, executions."""

    category: str
    kind: str
    ns: float
    count: int
    clock: str = "device"


def intervals_of(frame: pl.DataFrame) -> list[Interval]:
    """Start and end of every row, ns."""
    ends = frame["start_ns"] + frame["duration_ns"]
    return list(zip(frame["start_ns"].to_list(), ends.to_list(), strict=True))


def busy_ns(window: Window) -> int:
    """Time in which the device ran anything, overlaps counted once."""
    return length(clip(intervals_of(window.kernels), window.span))


def device_shares(window: Window) -> list[Share]:
    """Busy and idle time by category; the sum is the window's span.

    Kernels that overlap (on several streams, and a little on one) share the time evenly.
    """
    inside = window.kernels.filter(
        (pl.col("start_ns") < window.span[1])
        & (pl.col("start_ns") + pl.col("duration_ns") > window.span[0])
    )
    labels = inside["category"].to_list()
    busy = shared_time(labels, clip(intervals_of(inside), window.span))
    rows = [Share(name, "busy", ns, labels.count(name)) for name, ns in busy.items()]
    idle: dict[str, list[int]] = {}
    for cause, ns in _gaps(window, inside):
        idle.setdefault(cause, []).append(ns)
    return rows + [Share(cause, "idle", sum(gaps), len(gaps)) for cause, gaps in idle.items()]


def _gaps(window: Window, kernels: pl.DataFrame) -> list[tuple[str, int]]:
    """Every gap of the device in the span: its cause and its ns."""
    ordered = kernels.select(
        "start_ns", "duration_ns", "correlation", "launch_start_ns", "launch_duration_ns"
    ).sort("start_ns")
    syncs = merge(intervals_of(window.launches.filter(pl.col("kind") == "sync")))
    found: list[tuple[str, int]] = []
    end, last = window.span[0], None
    start_is_ours = window.steps is not None and window.steps > 1
    for start, duration, correlation, launched, launching in ordered.iter_rows():
        if start > end:
            launch = None if launched is None else (launched, launched + (launching or 0))
            cause = _cause(end, launch, syncs)
            if end == window.span[0] and start_is_ours:
                cause = WINDOW_START
            elif last is not None and correlation == last:
                cause = IN_GRAPH
            found.append((cause, start - end))
        if start + duration >= end:
            end, last = start + duration, correlation
    if window.span[1] > end:
        found.append((NOTHING_LEFT, window.span[1] - end))
    return found


def _cause(end: int, launch: Interval | None, syncs: list[Interval]) -> str:
    """Why the device waited after ``end`` for the kernel that ``launch`` brought.

    - launched before ``end`` and the call was over: the device's own doing (a dependency, a stream
      that waits, the ramp between kernels);
    - the call was under way at ``end``: launch in flight;
    - launched after ``end``, and the host stood in a synchronising call at ``end``: drained by it;
    - launched after ``end`` otherwise: the host was late.
    """
    if launch is None:
        return UNLINKED
    if launch[1] <= end and launch[0] < end:
        return DEVICE
    if launch[0] < end:
        return IN_FLIGHT
    at = bisect_right(syncs, (end, 2**63)) - 1
    return SYNC if at >= 0 and syncs[at][0] <= end <= syncs[at][1] else LAUNCH_BOUND
