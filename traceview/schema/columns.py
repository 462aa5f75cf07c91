"""How a table is declared: columns, and the ones that many tables share."""

from __future__ import annotations

import msgspec
import polars as pl


class Column(msgspec.Struct, frozen=True):
    """One column: name (with its unit), polars dtype, and what it means."""

    name: str
    dtype: pl.DataType | type[pl.DataType]
    meaning: str


class TableSpec(msgspec.Struct, frozen=True):
    """One table: its name, what one row is, and its columns in order."""

    name: str
    row: str
    columns: tuple[Column, ...]

    @property
    def polars_schema(self) -> dict[str, pl.DataType | type[pl.DataType]]:
        return {column.name: column.dtype for column in self.columns}


PASS = Column(
    "pass", pl.String, "which run of the script: cold, warm, baseline (all eager), or logs"
)
RANK = Column("rank", pl.Int32, "distributed rank; null where the program was not distributed")
HEAD = (PASS, RANK)
RAW = (
    Column("raw_file", pl.String, "the raw file this was read from, relative to the run folder"),
    Column("raw_line", pl.Int64, "1-based line in that file where the record starts"),
)
COMPILE = (
    Column("compile_key", pl.String, "unique name of the compile in this run: pass:pid:epoch:id"),
    Column("compile_id", pl.String, "torch's compile id, attempts joined: 0/0, !0/1/0"),
)


def table(name: str, row: str, *columns: Column, raw: bool = False) -> TableSpec:
    """Declare a table; ``HEAD`` comes first, ``RAW`` last where the rows are read from a log line."""
    return TableSpec(name, row, (*HEAD, *columns, *(RAW if raw else ())))
