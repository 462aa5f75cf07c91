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


PASS = Column("pass", pl.String, "which run of the script: cold, warm, baseline (all eager), or logs")
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
CODE = (
    Column("co_name", pl.String, "code object"),
    Column("co_filename", pl.String, "its file"),
    Column("co_firstlineno", pl.Int32, "its first line"),
)
#: Exclusive parts of compile seconds.
PHASES = (
    Column("dynamo_s", pl.Float64, "tracing: dynamo less AOT"),
    Column("aot_s", pl.Float64, "AOTAutograd less Inductor"),
    Column("inductor_s", pl.Float64, "Inductor less code generation"),
    Column("codegen_s", pl.Float64, "code generation and kernel compilation"),
)
RECOMPILED = (
    Column("co_name", pl.String, "code object that was compiled again"),
    Column("co_filename", pl.String, "its file"),
    Column("co_firstlineno", pl.Int32, "its first line"),
)
FAILED_GUARD = (
    Column("source_name", pl.String, "what the guard reads: x, self.step, k"),
    Column("dim", pl.Int32, "dimension, for size and stride"),
    Column("old", pl.String, "value the guard expected"),
    Column("new", pl.String, "value it met; null where the log does not say"),
    Column("user_file", pl.String, "file that the guard (or its user stack) names"),
    Column("user_line", pl.Int32, "line there"),
    Column("user_code", pl.String, "source text that the guard quotes"),
)
#: Of a thread that was looked at.
INNERMOST = (
    Column("file", pl.String, "user's file of its innermost stack frame there; null: none"),
    Column("line", pl.Int32, "line there"),
    Column("function", pl.String, "function there"),
)



def table(name: str, row: str, *columns: Column, raw: bool = False) -> TableSpec:
    """Declare a table; ``HEAD`` comes first, ``RAW`` last where the rows are read from a log line."""
    return TableSpec(name, row, (*HEAD, *columns, *(RAW if raw else ())))
