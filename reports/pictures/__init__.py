"""Pictures of a diagnosis, a module each: plain data to ``svg`` shapes, nothing computed."""

from __future__ import annotations

from traceview.reports.pictures.accounts import accounts, times
from traceview.reports.pictures.bandwidth import bandwidth
from traceview.reports.pictures.compiles import compiles, first_calls, placed
from traceview.reports.pictures.groups import groups, undrawn_groups
from traceview.reports.pictures.pairs import off_axis, pairs
from traceview.reports.pictures.phases import phase_families, phases
from traceview.reports.pictures.roofline import roofline
from traceview.reports.pictures.steps import families, steps, undrawn
from traceview.reports.pictures.waterfall import axis_start, waterfall

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
