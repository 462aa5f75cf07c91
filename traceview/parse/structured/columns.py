"""Rows to frames: what ``tables.from_rows`` does, quicker for many rows of one log."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, repeat
from typing import Any

import msgspec
import polars as pl

from traceview.parse.structured.state import Block, Row
from traceview.tables import spec_of

Dtype = pl.DataType | type[pl.DataType]
_ENCODE = msgspec.json.Encoder().encode
_TEXTS = pl.List(pl.String)
_SAME = ("pass", "raw_file")  # of every row of one process


def frame(table: str, rows: Sequence[Row]) -> pl.DataFrame:
    """Table ``table`` of rows of one process; what a row lacks is null."""
    return pl.DataFrame(
        [
            pl.Series(name, [rows[0][name]], dtype=dtype).new_from_index(0, len(rows))
            if name in _SAME
            else _series(name, dtype, [row.get(name) for row in rows])
            for name, dtype in spec_of(table).polars_schema.items()
        ]
    )


def frame_of_blocks(table: str, blocks: Sequence[Block]) -> pl.DataFrame:
    """The same of rows that came in blocks."""
    return pl.DataFrame(
        [
            _series(name, dtype, list(chain.from_iterable(_values(b, name) for b in blocks)))
            for name, dtype in spec_of(table).polars_schema.items()
        ]
    )


def _values(block: Block, name: str) -> Sequence[Any] | repeat[Any]:
    return block.columns.get(name) or repeat(block.head.get(name), block.rows)


def _series(name: str, dtype: Dtype, values: list[Any]) -> pl.Series:
    """Lists of texts go by way of JSON: polars makes a series of every Python list otherwise."""
    if dtype != _TEXTS:
        return pl.Series(name, values, dtype=dtype, strict=False)
    texts = [None if value is None else _ENCODE(value).decode() for value in values]
    return pl.Series(name, texts, dtype=pl.String).str.json_decode(_TEXTS)
