"""Memory of a profiler window, from the profiler's record of every allocation and release."""

from __future__ import annotations

from typing import Any

import polars as pl

_CPU, _CUDA = 0, 1


def memory_rows(memory: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows of table ``memory`` (source ``profiler``): peak and start of every device seen.

    On a CPU the profiler counts from its own start, what was allocated before is not in it.
    """
    rows = []
    events = memory.drop_nulls(["total_allocated", "device_type"])
    for (kind, index), mine in events.group_by("device_type", "device_id", maintain_order=True):
        start = mine["total_allocated"][0] - (mine["allocated"][0] or 0)
        peak = max(start, mine["total_allocated"].max())
        device = {_CPU: "cpu", _CUDA: f"cuda:{index}"}.get(kind)
        if device is not None:
            rows.append(
                {"device": device, "source": "profiler", "peak_bytes": peak, "start_bytes": start}
            )
    return rows
