"""Pictures of a diagnosis: plain data to shapes of ``svg``, nothing computed."""

from __future__ import annotations

from traceview.reports.pictures import compiles, limits, pairs, time

__all__ = ["compiles", "limits", "pairs", "time"]
