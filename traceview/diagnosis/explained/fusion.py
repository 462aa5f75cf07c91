"""What was fused, what was not and why; what the passes changed."""

from __future__ import annotations

from traceview.diagnosis.explanation import FusionNote, GraphPass
from traceview.diagnosis.focus import Focus
from traceview.tables import Tables


def notes(tables: Tables, focus: Focus) -> tuple[FusionNote, ...]:
    """Notes in order of weight."""
    return ()


def passes(tables: Tables, focus: Focus) -> tuple[GraphPass, ...]:
    """Passes in order of running."""
    return ()
