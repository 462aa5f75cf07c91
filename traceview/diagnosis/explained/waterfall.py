"""Effects between the two medians."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from traceview.diagnosis.explanation import Effect, EffectRow
from traceview.diagnosis.focus import Focus
from traceview.tables import Tables

#: Rows of one effect that a report has room for; what follows is summed up in one row.
MOST_ROWS = 12


def effects(tables: Tables, focus: Focus) -> tuple[Effect, ...]:
    """The waterfall in its order; the rows of an effect by size, their sum is the effect."""
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in focus.rows(tables["waterfall_rows"]):
        rows[row["effect"]].append(row)
    found = sorted(focus.rows(tables["waterfall"]), key=lambda row: row["order"])
    return tuple(
        Effect(
            effect=row["effect"],
            ms=row["ms"],
            eager_ms=row["eager_ms"],
            compiled_ms=row["compiled_ms"],
            clock=row["clock"] or "host",
            confidence=row["confidence"] or "derived",
            rows=_shown(rows[row["effect"]]),
        )
        for row in found
    )


def _shown(rows: list[dict[str, Any]]) -> tuple[EffectRow, ...]:
    """The largest changes, and one row for all others where there are more."""
    rows = sorted(rows, key=lambda row: -abs(row["ms"]))
    if len(rows) <= MOST_ROWS:
        return tuple(_row(row) for row in rows)
    rest = rows[MOST_ROWS - 1 :]
    summed = EffectRow(
        what=f"{len(rest)} more",
        group_id=None,
        file=None,
        line=None,
        eager_ms=_sum(row["eager_ms"] for row in rest),
        compiled_ms=_sum(row["compiled_ms"] for row in rest),
        ms=sum(row["ms"] for row in rest),
    )
    return (*(_row(row) for row in rows[: MOST_ROWS - 1]), summed)


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _row(row: dict[str, Any]) -> EffectRow:
    return EffectRow(
        what=row["what"],
        group_id=row["group_id"],
        file=row["file"],
        line=row["line"],
        eager_ms=row["eager_ms"],
        compiled_ms=row["compiled_ms"],
        ms=row["ms"],
    )
