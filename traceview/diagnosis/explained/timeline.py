"""One step of each stance on a time axis."""

from __future__ import annotations

from traceview.diagnosis.explanation import StepTimeline
from traceview.diagnosis.focus import Focus
from traceview.tables import Tables


def timelines(tables: Tables, focus: Focus) -> tuple[StepTimeline, ...]:
    """Eager, then compiled."""
    return ()
