"""Kernels and steps beside what the device can do."""

from __future__ import annotations

from traceview.diagnosis.explanation import Ceiling, KernelLimit, StepLimit
from traceview.diagnosis.focus import Focus
from traceview.tables import Tables


def ceilings(tables: Tables, focus: Focus) -> tuple[Ceiling, ...]:
    """Ceilings of the device."""
    return ()


def kernel_limits(tables: Tables, focus: Focus) -> tuple[KernelLimit, ...]:
    """Dearest first."""
    return ()


def step_limits(tables: Tables, focus: Focus) -> tuple[StepLimit, ...]:
    """One row a stance."""
    return ()
