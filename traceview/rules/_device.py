"""Busy and idle time of the device in a step, from table ``accounting``."""

from __future__ import annotations

from traceview.rules._rows import first_rank, rows
from traceview.tables import Tables


def idle_ms(tables: Tables, stance: str, cause: str = "") -> float | None:
    """Idle time of a step as timed, ms, from causes whose name holds ``cause``.

    None where no device was profiled in that stance.
    """
    return _ms(tables, stance, "idle", cause)


def is_starved(tables: Tables) -> bool:
    """Whether it waits for launches for longer than it works: a shorter kernel saves nothing then.

    Its wait for the next launch becomes longer by as much.
    """
    waits, works = idle_ms(tables, "compiled", "launch_bound"), _ms(tables, "compiled", "busy")
    return (waits or 0.0) > (works or 0.0)


def _ms(tables: Tables, stance: str, kind: str, cause: str = "") -> float | None:
    accounts = first_rank(rows(tables, "accounting", stance=stance, clock="device"))
    if not accounts:
        return None
    found = [row for row in accounts if row["kind"] == kind and cause in row["category"]]
    return sum((row["ms"] or 0.0 for row in found), 0.0)
