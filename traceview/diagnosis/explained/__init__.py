"""Tables → the explanation: one module a section, each ``(tables, focus) -> tuple``."""

from __future__ import annotations

from traceview.diagnosis.explained import (
    accounts,
    compiling,
    fusion,
    guards,
    limits,
    matching,
    timeline,
    waterfall,
)
from traceview.diagnosis.explanation import Explanation
from traceview.diagnosis.focus import Focus
from traceview.tables import Tables

__all__ = ["explanation"]


def explanation(tables: Tables, focus: Focus) -> Explanation:
    """Where the milliseconds went, for the process and rank that the diagnosis is about."""
    return Explanation(
        waterfall=waterfall.effects(tables, focus),
        details=accounts.details(tables, focus),
        profiler=accounts.profiler(tables, focus),
        matching=matching.matching(tables, focus),
        ceilings=limits.ceilings(tables, focus),
        limits=limits.kernel_limits(tables, focus),
        step_limits=limits.step_limits(tables, focus),
        timelines=timeline.timelines(tables, focus),
        fusion=fusion.notes(tables, focus),
        passes=fusion.passes(tables, focus),
        call_path=guards.call_path(tables, focus),
        guards=guards.guard_costs(tables, focus),
        phases=compiling.phases(tables, focus),
        workers=compiling.workers(tables, focus),
        first_calls=compiling.first_calls(tables, focus),
        warm_first_calls=compiling.warm_first_calls(tables),
        autotuning=compiling.autotuning(tables, focus),
    )
