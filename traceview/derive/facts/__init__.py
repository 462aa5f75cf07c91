"""Facts that rules and the report's sections share: each is worked out here, and only here."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from traceview.tables import Tables

__all__ = ["add_facts"]

#: Name of a table of ``traceview.schema.facts`` → what makes it; None where it was not recorded.
#: A fact may read those before it.
_FACTS: dict[str, Callable[[Tables], pl.DataFrame | None]] = {}


def add_facts(tables: Tables) -> None:
    """Put every fact that ``tables``, which hold all other derived ones, give."""
    for name, make in _FACTS.items():
        frame = make(tables)
        if frame is not None:
            tables.put(name, frame)
