"""Table accounting: a step's time by category, as profiled and on the step as timed.

The profiler slows the host down and leaves the device's work alone. So ``profiled_ms`` is what
stands in the trace, and ``ms`` is that on a step of the time measured without a profiler:

- on a device, idle time is what busy time leaves of the timed step, but no more than was profiled:
  the profiler only makes the device wait longer. What then remains of the step is busy time, which
  differs from the profiled one where the device's clock did. Causes of idle time, and categories of
  busy time, share in proportion. Where the host runs ahead of the device, next to none is idle;
- on a host, where the profiler's cost falls on every event, all categories shrink in proportion.

Either way they add up to the timed step. Without one, ``ms`` is as profiled.
"""

from __future__ import annotations

from typing import Any

from traceview.derive.time.device import WINDOW_START, Share, device_shares
from traceview.derive.time.host import host_shares
from traceview.derive.windows import Window

Row = dict[str, Any]


def accounting(window: Window, step_ms: float | None, *, graphs_hold_kernels: bool) -> list[Row]:
    """Rows of table ``accounting`` for one window; ``step_ms`` is the step without a profiler.

    ``graphs_hold_kernels`` is meant for ``host_shares``.
    """
    shares = (
        device_shares(window)
        if window.on_device
        else host_shares(window, graphs_hold_kernels=graphs_hold_kernels)
    )
    profiled = [(share, window.ms_per_step(share.ns)) for share in shares]
    rows = [_row(window, share, ms, ms) for share, ms in profiled]
    if step_ms is None or not window.steps:
        return rows
    return _on_device(rows, step_ms) if window.on_device else _scaled(rows, step_ms)


def _on_device(rows: list[Row], step_ms: float) -> list[Row]:
    """``rows`` with ``ms`` on a step of ``step_ms``, of which the window's start is no part."""
    start = [row for row in rows if row["category"] == WINDOW_START]
    idle = [row for row in rows if row["kind"] == "idle" and row not in start]
    busy = [row for row in rows if row["kind"] == "busy"]
    longest = sum(row["profiled_ms"] for row in idle)
    left = step_ms - sum(row["profiled_ms"] for row in busy)
    idle_ms = min(max(0.0, left), longest)
    _scaled(start, 0.0)
    _scaled(idle, idle_ms)
    _scaled(busy, step_ms - idle_ms)
    return rows


def _scaled(rows: list[Row], total_ms: float) -> list[Row]:
    """``rows`` with ``ms`` that add up to ``total_ms``."""
    profiled = sum(row["profiled_ms"] for row in rows)
    for row in rows:
        row["ms"] = row["profiled_ms"] * total_ms / profiled if profiled else 0.0
    return rows


def _row(window: Window, share: Share, profiled_ms: float | None, ms: float | None) -> Row:
    return {
        **window.head,
        "category": share.category,
        "kind": share.kind,
        "ms": ms,
        "profiled_ms": profiled_ms,
        "count": window.per_step(share.count),
        "clock": share.clock,
    }
