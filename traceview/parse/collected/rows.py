"""Rows of declared tables from events: values of the wrong type become null, never an error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
import polars as pl

from traceview.parse.damage import Damage
from traceview.tables import from_rows, spec_of

Row = dict[str, Any]
_INTEGER_LIMIT = {pl.Int32: 2**31, pl.Int64: 2**63}


def table_of(name: str, rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """Table ``name``; of every row the declared columns, each as its dtype or null."""
    schema = spec_of(name).polars_schema.items()
    declared = ({name: _as(dtype, row.get(name)) for name, dtype in schema} for row in rows)
    return from_rows(name, declared)


def batch_rows(
    event: Mapping[str, Any], columns: tuple[str, ...], file: str, damage: Damage
) -> Iterator[Row]:
    """The rows of a batch event (``calls``, ``steps``): lists, named by ``columns``."""
    rows = event.get("rows")
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, list) and len(row) >= len(columns):
            yield dict(zip(columns, row, strict=False))
        else:
            damage.count(file, "bad_event", None, f"{event.get('event')}: {row!r}"[:200])


def _as(dtype: Any, value: Any) -> Any:  # noqa: ANN401
    if value is None:
        return None
    if dtype == pl.String:
        nested = isinstance(value, (list, dict))
        return msgspec.json.encode(value).decode() if nested else str(value)
    if dtype == pl.Boolean:
        return value if isinstance(value, bool) else None
    if isinstance(dtype, pl.List):
        items = value if isinstance(value, list) else ()
        return [item for item in items if isinstance(item, str)]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if dtype == pl.Float64:
        return float(value)
    whole = int(value) if value == value and abs(value) != float("inf") else None
    return whole if whole is not None and abs(whole) < _INTEGER_LIMIT[dtype] else None
