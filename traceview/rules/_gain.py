"""What rules about the gain of a compiled step share: idle time, launches, lines of tables."""

from __future__ import annotations

from traceview.rules.kit import Location, Tables, first_rank, rows


def idle_ms(tables: Tables, cause: str = "") -> float | None:
    """Idle time of the device in a compiled step as timed, ms; None where no device was profiled.

    ``cause``: only categories of table ``accounting`` whose name contains it.
    """
    return _ms(tables, "idle", cause)


def is_starved(tables: Tables) -> bool:
    """Whether the device waits for launches for longer than it works.

    Then a shorter kernel saves nothing: the wait for the next launch gets longer by as much.
    """
    return (idle_ms(tables, "launch_bound") or 0.0) > (_ms(tables, "busy", "") or 0.0)


def _ms(tables: Tables, kind: str, cause: str) -> float | None:
    accounts = first_rank(rows(tables, "accounting", stance="compiled", clock="device"))
    if not accounts:
        return None
    found = (row for row in accounts if row["kind"] == kind and cause in row["category"])
    return sum((row["ms"] or 0.0 for row in found), 0.0)


def launches(count: float) -> str:
    """``1 launch``, ``35 launches``."""
    return f"{count:.0f} launch{'' if round(count) == 1 else 'es'}"


def location(text: str) -> Location | None:
    """The line that a table names as ``file:line``."""
    file, _, line = text.rpartition(":")
    return Location(file, int(line)) if line.isdecimal() else None
