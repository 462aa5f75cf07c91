"""Time accounting and step counts of both stances, with the memory peaks."""

from __future__ import annotations

from typing import Any

from traceview.diagnosis.focus import Focus
from traceview.diagnosis.model import AccountRow, StanceCounts
from traceview.tables import Tables

STANCES = ("eager", "compiled")
#: Which source of a memory peak is the best: the allocator's own count, then the process's size.
SOURCES = ("allocator", "profiler", "process")
COUNTS = (
    "step_ms", "device_busy_ms", "device_idle_ms", "kernels", "launches", "graph_launches", "syncs",
    "compiled_regions", "cache_lookup_ms", "gap_ms", "page_faults",
)  # fmt: skip


def accounting(tables: Tables, focus: Focus) -> dict[str, tuple[AccountRow, ...]]:
    """Stance → its categories, largest first; both stances are keys, empty if not recorded."""
    rows = sorted(focus.rows(tables["accounting"]), key=lambda row: -(row["ms"] or 0.0))
    return {
        stance: tuple(
            AccountRow(
                category=row["category"],
                ms=row["ms"],
                kind=row["kind"] or "other",
                count=row["count"],
                clock=row["clock"] or "host",
            )
            for row in rows
            if row["stance"] == stance and row["ms"] is not None
        )
        for stance in STANCES
    }


def counts(tables: Tables, focus: Focus) -> dict[str, StanceCounts]:
    """Stance → what one step does; a stance of which nothing was recorded has only None."""
    windows = {row["stance"]: row for row in focus.rows(tables["step_counts"])}
    peaks = focus.rows(tables["memory"])
    return {
        stance: StanceCounts(
            **{name: windows.get(stance, {}).get(name) for name in COUNTS},
            **_peak([row for row in peaks if row["stance"] == stance]),
        )
        for stance in STANCES
    }


def _peak(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The largest peak by the best source there is; timed blocks count before profiler windows."""
    for source in SOURCES:
        mine = [row for row in rows if row["source"] == source and row["peak_bytes"] is not None]
        timed = [row for row in mine if row["block_index"] is not None] or mine
        if timed:
            top = max(timed, key=lambda row: row["peak_bytes"])
            return {
                "peak_bytes": top["peak_bytes"],
                "peak_reserved_bytes": top["peak_reserved_bytes"],
                "peak_source": source,
            }
    return {}
