"""Evidence from rows."""

from __future__ import annotations

from traceview.rules._rows import Row
from traceview.rules.finding import Evidence

#: Enough to prove a finding; the tables hold the rest.
MOST_EVIDENCE = 5


def from_row(text: str, table: str, row: Row) -> Evidence:
    """``text`` with the raw line that the row was read from, where it has one."""
    return Evidence(text, table, row.get("raw_file"), row.get("raw_line"))
