"""Effects between the two medians."""

from __future__ import annotations

from traceview.diagnosis.explanation import Effect
from traceview.diagnosis.focus import Focus
from traceview.tables import Tables


def effects(tables: Tables, focus: Focus) -> tuple[Effect, ...]:
    """The waterfall in its order."""
    return ()
