"""What stands behind the accounting's categories, and the profiler's own cost."""

from __future__ import annotations

from traceview.diagnosis.explanation import AccountDetail, ProfilerCost
from traceview.diagnosis.focus import Focus
from traceview.tables import Tables


def details(tables: Tables, focus: Focus) -> tuple[AccountDetail, ...]:
    """Details, dearest first."""
    return ()


def profiler(tables: Tables, focus: Focus) -> tuple[ProfilerCost, ...]:
    """One row a stance."""
    return ()
