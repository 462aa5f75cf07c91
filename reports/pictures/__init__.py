"""Pictures of a diagnosis: plain data to shapes of ``svg``, nothing computed."""

from __future__ import annotations

from traceview.reports.pictures.compiles import (
    compiles,
    first_calls,
    phase_families,
    phases,
    placed,
)
from traceview.reports.pictures.limits import bandwidth, roofline
from traceview.reports.pictures.pairs import groups, off_axis, pairs, undrawn_groups
from traceview.reports.pictures.time import (
    accounts,
    axis_start,
    families,
    steps,
    times,
    undrawn,
    waterfall,
)

__all__ = [
    "accounts",
    "axis_start",
    "bandwidth",
    "compiles",
    "families",
    "first_calls",
    "groups",
    "off_axis",
    "pairs",
    "phase_families",
    "phases",
    "placed",
    "roofline",
    "steps",
    "times",
    "undrawn",
    "undrawn_groups",
    "waterfall",
]
