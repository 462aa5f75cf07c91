"""SQL on the tables, and what tables and columns there are; results as text in three formats.

The SQL is polars' own (``polars.SQLContext``), whose table functions open files and URLs. So a
query is taken apart first: what stands after FROM or JOIN is a name or a query in parentheses,
whatever comments and quotes are around it, and polars gets only the tokens that were looked at.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import polars as pl

from traceview.errors import UsageError
from traceview.schema import all_tables
from traceview.tables import Tables
from traceview.words.text import csv_cell, one_line

_TOKEN = re.compile(
    r"""(?P<nothing> \s+ | --[^\n]* | /\*.*?\*/ )
      | (?P<text> '(?:[^']|'')*' )
      | (?P<quoted> "(?:[^"]|"")*" | `(?:[^`]|``)*` )
      | (?P<word> [^\W\d]\w* )
      | (?P<number> \d+(?:\.\d+)?(?:[eE][-+]?\d+)? )
      | (?P<symbol> [-+*/%=<>!|&^~:;,.()\[\]] )""",
    re.VERBOSE | re.DOTALL,
)
_FILE_FUNCTION = re.compile(r"(?:read|scan)_", re.IGNORECASE)
_NO_UTF8 = re.compile("[\ud800-\udfff]")
_BEGINS = frozenset(("SELECT", "WITH", "FROM", "VALUES", "EXPLAIN", "SHOW"))
#: Words that end the list of tables after FROM or JOIN.
_AFTER_TABLES = frozenset(
    (
        *("SELECT", "ON", "USING", "WHERE", "GROUP", "HAVING", "QUALIFY", "WINDOW", "ORDER"),
        *("LIMIT", "OFFSET", "FETCH", "UNION", "EXCEPT", "INTERSECT"),
    )
)
#: What may stand before a parenthesis among the tables; UNNEST takes a list of the query's own.
_BEFORE_PARENTHESIS = frozenset(("FROM", "JOIN", "AS", "VALUES", "UNNEST"))
#: polars works in calls within each other, one for each of these: some 700 end the process.
_NESTING = frozenset(
    (
        *("SELECT", "UNION", "EXCEPT", "INTERSECT", "JOIN", "AND", "OR", "NOT", "CASE", "IS", "IN"),
        *("LIKE", "ILIKE", "RLIKE", "REGEXP", "SIMILAR", "BETWEEN", "XOR", "INTERVAL"),
    )
)
_NO_OPERATOR = frozenset(",.;()[]")
MOST_NESTED = 200
#: Its parser tries brackets in several ways: each one more inside may double the time.
MOST_BRACKETS = 16
_BRACKETS = {"(": 1, "[": 1, ")": -1, "]": -1}
CELL_WIDTH = 60


def run_sql(tables: Tables, sql: str) -> pl.DataFrame:
    """The result of one ``select``; UsageError where polars can't run it.

    Every declared table is there; one that was not recorded has no rows.
    """
    sql = _of_tables_only(sql)
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


class _Token(NamedTuple):
    kind: str
    text: str

    @property
    def keyword(self) -> str:
        """A word in capitals; nothing for what is quoted."""
        return self.text.upper() if self.kind == "word" else ""

    @property
    def is_name(self) -> bool:
        return self.kind in ("word", "quoted")


def _of_tables_only(sql: str) -> str:
    """``sql`` without its comments; UsageError if it does more than read tables by their names."""
    everything = list(_tokens(sql))
    while everything and (everything[-1].kind == "nothing" or everything[-1].text == ";"):
        everything.pop()
    tokens = [token for token in everything if token.kind != "nothing"]
    begins = next((token.keyword for token in tokens if token.text != "("), "")
    if begins not in _BEGINS or any(token.text == ";" for token in tokens):
        fact = "The query can't be run: it must be one SELECT, which changes nothing."
        raise UsageError(fact, _tables_remedy(), slug="bad-query")
    nested = sum(
        token.keyword in _NESTING or (token.kind == "symbol" and token.text not in _NO_OPERATOR)
        for token in tokens
    )
    if nested > MOST_NESTED:
        fact = f"The query can't be run: it has {nested:,} operators, joins and SELECTs."
        remedy = f"Use {MOST_NESTED} at most; a list of values after IN may be longer."
        raise UsageError(fact, remedy, slug="bad-query")
    steps = (_BRACKETS.get(token.text, 0) for token in tokens)
    if max(accumulate(steps), default=0) > MOST_BRACKETS:
        fact = f"The query can't be run: it has more than {MOST_BRACKETS} brackets in each other."
        raise UsageError(fact, "Name its parts with WITH.", slug="bad-query")
    if any(_opens_a_file(tokens)):
        fact = "A query reads the run's tables only, no other files."
        raise UsageError(fact, _tables_remedy(), slug="bad-query")
    # A letter that touches a text would change what a backslash in it means.
    apart = {"nothing": " ", "text": " "}
    return "".join(
        apart.get(kind, "") + ("" if kind == "nothing" else text) for kind, text in everything
    )


def _opens_a_file(tokens: Sequence[_Token]) -> Iterator[bool]:
    """For each token, whether it names a file or calls a function where a table is expected."""
    tables, call = [False], [False]  # of each open parenthesis: among tables, of a function's call
    before = _END
    for token, after in pairwise((*tokens, _END)):
        if token.text == "(":
            tables.append(False)
            is_call = before.is_name and before.keyword not in _BEFORE_PARENTHESIS
            call.append(is_call and after.text != "(" and after.keyword not in _BEGINS)
        elif token.text == ")" and len(tables) > 1:
            tables.pop()
            call.pop()
        elif token.keyword in _AFTER_TABLES:
            tables[-1] = False
        elif token.keyword in ("FROM", "JOIN"):
            # not in ``extract(year FROM x)`` and ``x IS DISTINCT FROM y``
            tables[-1] = not (call[-1] or before.keyword == "DISTINCT")
        if token.is_name and after.text == "(":
            reads = _FILE_FUNCTION.match(token.text.strip('"`')) is not None
            aliased = before.keyword == "AS" or token.keyword in _BEFORE_PARENTHESIS
            yield reads or (tables[-1] and not aliased)
        else:
            yield tables[-1] and token.kind == "text"
        before = token


def _tokens(sql: str) -> Iterator[_Token]:
    """What ``sql`` consists of; UsageError where it is none of ``_TOKEN``, as a dollar quote."""
    position = 0
    while position < len(sql):
        found = _TOKEN.match(sql, position)
        if found is None or _NO_UTF8.search(found.group()):
            odd = _NO_UTF8.search(sql, position) if found else None
            what = ascii(odd.group()) if odd else repr(sql[position])
            fact = f"The query can't be run: {what} is no part of its SQL."
            raise UsageError(fact, _tables_remedy(), slug="bad-query")
        position = found.end()
        yield _Token(str(found.lastgroup), found.group())


_END = _Token("symbol", "")


def described(tables: Tables) -> dict[str, Any]:
    """Every declared table: what a row is, how many there are (null: not recorded), the columns."""
    return {
        name: {
            "row": spec.row,
            "rows": tables[name].height if tables.has(name) else None,
            "columns": {
                c.name: {"dtype": str(c.dtype), "meaning": c.meaning} for c in spec.columns
            },
        }
        for name, spec in all_tables().items()
    }


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
    header = [one_line(name) for name in frame.columns]
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
    """CSV with a header; null is empty, a list is JSON, and no text is taken for a formula."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(csv_cell, frame.columns))
    writer.writerows(
        [json.dumps(v, default=str) if isinstance(v, (list, dict)) else csv_cell(v) for v in row]
        for row in frame.iter_rows()
    )
    return out.getvalue()


def format_json(frame: pl.DataFrame) -> str:
    """A JSON list of objects, one a line, in ASCII; what is no number (NaN) is null."""
    rows = (
        {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in row.items()}
        for row in frame.to_dicts()
    )
    texts = (json.dumps(row, default=str).replace("\x7f", "\\u007f") for row in rows)
    return "[" + ",\n ".join(texts) + "]\n"


def _tables_remedy() -> str:
    return f"Tables are {', '.join(all_tables())}; `traceview tables RUN` explains their columns."


def _cell(value: Any, width: int) -> str:  # noqa: ANN401
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    text = one_line(str(value))
    return text if len(text) <= width else text[: width - 1] + "…"
