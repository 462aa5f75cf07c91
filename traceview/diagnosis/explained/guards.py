"""The way into the generated code, and the guards on it."""

from __future__ import annotations

from traceview.diagnosis.explanation import CallPart, GuardCost
from traceview.diagnosis.focus import Focus
from traceview.tables import Tables


def call_path(tables: Tables, focus: Focus) -> tuple[CallPart, ...]:
    """Parts, dearest first."""
    return ()


def guard_costs(tables: Tables, focus: Focus) -> tuple[GuardCost, ...]:
    """Dearest first."""
    return ()
