"""What a step takes, eager and compiled: the figures that costs are held against."""

from __future__ import annotations

from traceview.derive.facts.rows import Row, first
from traceview.tables import Tables


def measured(tables: Tables) -> Row | None:
    """The row of ``speedups`` that the verdict rests on, or None."""
    return first(tables, "speedups")


def outcome(tables: Tables) -> str | None:
    """helped, neutral, hurt, …, or None where nothing was measured."""
    found = measured(tables)
    return found["outcome"] if found else None


def is_timed(tables: Tables) -> bool:
    """Whether a compiled step was timed against an eager one."""
    return outcome(tables) in ("helped", "neutral", "hurt")


def ratio(tables: Tables) -> float | None:
    """Compiled over eager time of a step: above 1, compiling hurts."""
    found = measured(tables)
    speedup = found["speedup"] if found else None
    return 1 / speedup if speedup else None


def step_ms(tables: Tables, stance: str) -> float | None:
    """Median step of a stance from the timed blocks, else as profiled."""
    found = measured(tables)
    value: float | None = found[f"{stance}_ms"] if found else None
    if value is None:
        counts = first(tables, "step_counts", stance=stance)
        value = counts["step_ms"] if counts else None
    return value
