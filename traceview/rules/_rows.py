"""Reading rows: which pass a rule looks at, and rows as plain dicts."""

from __future__ import annotations

from typing import Any

import polars as pl

from traceview.tables import Tables

Row = dict[str, Any]

#: The measured pass first; `logs` are logs that were opened without a measurement.
_PASSES = ("cold", "logs", "baseline", "warm")


def frame(tables: Tables, name: str, /, **equal: object) -> pl.DataFrame:
    """Table ``name`` of one pass, the measured one where it has rows, filtered on columns."""
    table = tables[name]
    present = set(table["pass"].unique())
    chosen = next((known for known in _PASSES if known in present), None)
    if chosen is not None:
        table = table.filter(pl.col("pass") == chosen)
    for column, value in equal.items():
        table = table.filter(pl.col(column) == pl.lit(value))
    return table


def rows(tables: Tables, name: str, /, **equal: object) -> list[Row]:
    """``frame`` as dicts, in the table's own order, every rank."""
    return frame(tables, name, **equal).to_dicts()


def first_rank(found: list[Row]) -> list[Row]:
    """Only the lowest rank's rows: what a cost is counted on, since ranks do the same work."""
    ranks = [row["rank"] for row in found if row["rank"] is not None]
    return [row for row in found if row["rank"] == min(ranks)] if ranks else found


def first(tables: Tables, name: str, /, **equal: object) -> Row | None:
    """The first row of the first rank, or None."""
    found = first_rank(rows(tables, name, **equal))
    return found[0] if found else None
