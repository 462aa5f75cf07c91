"""What rules of other packages build on: names that stay (docs/adding-a-rule.md).

    rows, first, first_rank         a table of the measured pass as dicts
    user, compile_call, code_object a row's line of the user's own source
    about                           the functions that rows are about
    step_ms, severity               what a step takes, and whether a cost is worth a warning
    from_row                        evidence with the raw line that a row was read from
    milliseconds, seconds, percent, plural, shorten    figures and texts as people read them

Whatever else ``traceview.rules`` holds may change.
"""

from __future__ import annotations

from typing import Any

from traceview.rules import _rows
from traceview.rules._costs import severity, step_ms
from traceview.rules._evidence import from_row
from traceview.rules._places import about, code_object, compile_call, user
from traceview.rules._rows import first_rank
from traceview.rules.finding import (
    Confidence,
    Cost,
    Evidence,
    Finding,
    Location,
    Severity,
    Snippet,
)
from traceview.tables import Tables
from traceview.words.numbers import milliseconds, percent, plural, seconds
from traceview.words.text import shorten

Row = dict[str, Any]

__all__ = [
    "Confidence",
    "Cost",
    "Evidence",
    "Finding",
    "Location",
    "Row",
    "Severity",
    "Snippet",
    "Tables",
    "about",
    "code_object",
    "compile_call",
    "first",
    "first_rank",
    "from_row",
    "milliseconds",
    "percent",
    "plural",
    "rows",
    "seconds",
    "severity",
    "shorten",
    "step_ms",
    "user",
]


def rows(tables: Tables, name: str, /, **equal: object) -> list[Row]:
    """Table ``name`` of the measured pass as dicts of the rule's own, filtered on columns."""
    return [dict(row) for row in _rows.rows(tables, name, **equal)]


def first(tables: Tables, name: str, /, **equal: object) -> Row | None:
    """The first row of the first rank, or None."""
    found = _rows.first(tables, name, **equal)
    return dict(found) if found else None
