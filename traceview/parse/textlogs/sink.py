"""Where parsers of text logs put their rows: head columns filled in, one list a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

import polars as pl

from traceview.parse.frames import StackFrame, first_user_frame, stack_json
from traceview.parse.keys import CompileKeys, CompileName
from traceview.parse.textlogs.messages import Message
from traceview.tables import from_rows

Row = dict[str, Any]
#: What a table may hold, and what a row takes of it beside its text.
_MOST, _ROW = 16 << 20, 1 << 10
_PID = "process"  # stands in rows until they become a table


class Reader(Protocol):
    """One parser of torch's messages; a new one is made for every pass."""

    def message(self, message: Message) -> None:
        """Read one message."""


class Sink:
    """Rows of one pass by table; ``raw_file`` is the file that is being read.

    A row may be changed until it leaves the sink; then it is empty.
    """

    def __init__(self, pass_name: str, keys: CompileKeys) -> None:
        self.pass_name = pass_name
        self.keys = keys
        self.raw_file = ""
        self._rows: dict[str, list[Row]] = {}
        self._held: dict[str, int] = {}
        self._named: Message | None = None
        self._name: CompileName | None = None

    def looked(self, names: Iterable[str]) -> None:
        """The log would have told of these tables: without rows they are empty, not absent."""
        for name in names:
            self._rows.setdefault(name, [])

    def add(self, table: str, message: Message, offset: int = 0, /, **columns: Any) -> Row:  # noqa: ANN401
        """A row of ``table`` read from the line ``offset`` lines into ``message``."""
        name = self.name(message)
        if message.rank is not None:
            self.keys.learn_rank(message.pid, message.rank)
        row: Row = {
            "pass": self.pass_name,
            "rank": message.rank,
            _PID: message.pid,
            "compile_key": name.compile_key if name else None,
            "compile_id": name.compile_id if name else None,
            "raw_file": self.raw_file,
            "raw_line": message.first_line + offset,
            **columns,
        }
        return self.put(table, row)

    def put(self, table: str, row: Row) -> Row:
        """A row whose head columns are filled in already."""
        self._rows.setdefault(table, []).append(row)
        self._held[table] = self._held.get(table, 0) + _ROW + len(row.get("text") or "")
        return row

    def name(self, message: Message) -> CompileName | None:
        """The compile that a message belongs to."""
        if message.compile_id is None:
            return None
        if message is not self._named:
            self._named = message
            clock_us = message.clock_us if self.keys.tell_times_apart else None
            self._name = self.keys.name(message.pid, message.compile_id, clock_us)
        return self._name

    def rank(self, message: Message) -> int | None:
        """The rank that a message tells, or that is known of its process."""
        return self.keys.rank(message.pid) if message.rank is None else message.rank

    def full(self) -> Iterator[tuple[str, pl.DataFrame]]:
        """Rows of tables that have grown large, but for the newest, which may still change."""
        for table in [table for table, held in self._held.items() if held > _MOST]:
            rows = self._rows[table]
            old, rows[:] = rows[: -len(rows) // 10], rows[-len(rows) // 10 :]
            self._held[table] //= 10
            yield table, from_rows(table, map(self._finished, old))
            for row in old:
                row.clear()

    def frames(self) -> dict[str, pl.DataFrame]:
        """The tables, with their declared columns; a rank learnt late counts for earlier lines."""
        return {
            name: from_rows(name, map(self._finished, rows)) for name, rows in self._rows.items()
        }

    def _finished(self, row: Row) -> Row:
        finished = {key: value for key, value in row.items() if key != _PID}
        if finished.get("rank") is None:
            finished["rank"] = self.keys.rank(row.get(_PID))
        return finished


def user_columns(stack: Sequence[StackFrame]) -> Row:
    """``user_file`` … ``user_stack`` of a stack, outermost first."""
    nearest = first_user_frame(stack)
    return {
        "user_file": nearest.file if nearest else None,
        "user_line": nearest.line if nearest else None,
        "user_function": nearest.function if nearest else None,
        "user_stack": stack_json(stack),
    }


def split_at(lines: Sequence[str], heads: tuple[str, ...]) -> Iterator[tuple[int, list[str]]]:
    """Cut lines where one begins with a known head: (offset of the first line, the lines)."""
    start = 0
    for index, line in enumerate(lines):
        if index > start and line.startswith(heads):
            yield start, list(lines[start:index])
            start = index
    if lines:
        yield start, list(lines[start:])
