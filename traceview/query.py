"""SQL on the tables, and what tables and columns there are; results as text in three formats.

The SQL is polars' own (``polars.SQLContext``): it reads nothing but the tables registered here.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from typing import Any

import polars as pl

from traceview.errors import UsageError
from traceview.schema import all_tables
from traceview.tables import Tables

_FILE_FUNCTION = re.compile(r"\b(?:read|scan)_\w+\"?\s*\(", re.IGNORECASE)
_LITERAL = re.compile(r"'(?:[^']|'')*'")
CELL_WIDTH = 60


def run_sql(tables: Tables, sql: str) -> pl.DataFrame:
    """The result of one ``select``; UsageError where polars can't run it.

    Every declared table is there; one that was not recorded has no rows.
    """
    if _FILE_FUNCTION.search(_LITERAL.sub("''", sql)):
        fact = "A query reads the run's tables only, no other files."
        raise UsageError(fact, _tables_remedy(), slug="bad-query")
    known = all_tables()
    context = pl.SQLContext({name: tables[name] for name in known}, eager=True)
    try:
        result = context.execute(sql)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        said = (line.strip() for line in str(error).splitlines())
        reason = next(filter(None, said), "no reason given").rstrip(".")
        remedy = _tables_remedy()
        names = [name for name in known if re.search(rf"\b{name}\b", sql)]
        if isinstance(error, pl.exceptions.ColumnNotFoundError) and names:
            columns = (f"{name}: {', '.join(known[name].polars_schema)}" for name in names)
            remedy = f"Columns are {'; '.join(columns)}."
        fact = f"The query can't be run: {reason}."
        raise UsageError(fact, remedy, slug="bad-query") from error
    return result


def format_tables(tables: Tables) -> str:
    """Every declared table, whether this run has it or not: a heading, and a line a column."""
    lines: list[str] = []
    for name, spec in all_tables().items():
        count = f"{tables[name].height} rows" if tables.has(name) else "not recorded"
        lines += ["", f"{name} ({count}): {spec.row}"]
        lines += [f"  {c.name:<22} {c.dtype!s:<12} {c.meaning}" for c in spec.columns]
    return "\n".join(lines[1:])


def format_table(frame: pl.DataFrame, cell_width: int = CELL_WIDTH) -> str:
    """Aligned text, one line a row; a cell is cut at ``cell_width``, line ends become spaces."""
    header = frame.columns
    body = [[_cell(value, cell_width) for value in row] for row in frame.iter_rows()]
    right = [dtype.is_numeric() for dtype in frame.dtypes]
    widths = [max(map(len, column)) for column in zip(header, *body, strict=True)]
    rows = [header, ["-" * width for width in widths], *body]
    lines = (
        "  ".join(
            text.rjust(width) if to_right else text.ljust(width)
            for text, width, to_right in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in rows
    )
    return "\n".join((*lines, f"({frame.height} rows)"))


def format_csv(frame: pl.DataFrame) -> str:
    """CSV with a header; null is empty, a list is JSON."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(frame.columns)
    writer.writerows(
        [json.dumps(v, default=str) if isinstance(v, (list, dict)) else v for v in row]
        for row in frame.iter_rows()
    )
    return out.getvalue()


def format_json(frame: pl.DataFrame) -> str:
    """A JSON list of objects, one a line; what is no number (NaN) is null."""
    rows = (
        {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in row.items()}
        for row in frame.to_dicts()
    )
    texts = (json.dumps(row, ensure_ascii=False, default=str) for row in rows)
    return "[" + ",\n ".join(texts) + "]\n"


def _tables_remedy() -> str:
    return f"Tables are {', '.join(all_tables())}; `traceview tables RUN` explains their columns."


def _cell(value: Any, width: int) -> str:  # noqa: ANN401
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    text = " ".join(str(value).split())
    return text if len(text) <= width else text[: width - 1] + "…"
