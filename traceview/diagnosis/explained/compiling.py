"""Compile phases on a time axis, the first call, autotuning."""

from __future__ import annotations

from traceview.diagnosis.explanation import Autotuned, FirstCallPart, PhaseSpan
from traceview.diagnosis.focus import Focus
from traceview.tables import Tables


def phases(tables: Tables, focus: Focus) -> tuple[PhaseSpan, ...]:
    """In order of start."""
    return ()


def first_calls(tables: Tables, focus: Focus) -> tuple[FirstCallPart, ...]:
    """Parts in order."""
    return ()


def autotuning(tables: Tables, focus: Focus) -> tuple[Autotuned, ...]:
    """Tables in order."""
    return ()
