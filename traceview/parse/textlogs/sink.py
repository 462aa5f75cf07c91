"""Where parsers of text logs put their rows: head columns filled in, one list a table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import polars as pl

from traceview.parse.keys import CompileKeys, CompileName
from traceview.parse.messages.shapes import Message
from traceview.tables import from_rows
from traceview.torchtext.remembered import remembered

Row = dict[str, Any]
#: Ranks that write to one log often say the same.
SAID_BY_RANKS = remembered(most=64, longest=1 << 17)
#: What the tables may hold, and what a row takes of it apart from its text.
_MOST, _ROW = 16 << 20, 1 << 10
_PID = "process"  # stands in rows until they become a table


class RawLine(NamedTuple):
    """A line that no torch logger wrote."""

    number: int
    data: bytes


class Sink:
    """Rows of one pass by table; ``raw_file`` is the file that is being read.

    A row may be changed until it leaves the sink; then it is empty.
    """

    def __init__(self, pass_name: str, keys: CompileKeys) -> None:
        self.pass_name = pass_name
        self.keys = keys
        self.raw_file = ""
        self._rows: dict[str, list[Row]] = {}
        self._held = 0
        self._named: Message | None = None
        self._name: CompileName | None = None

    def looked(self, names: Iterable[str]) -> None:
        """The log could have rows for these tables: without any they are empty, not absent."""
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
        return self._put(table, row)

    def raw(self, table: str, number: int, /, **columns: Any) -> Row:  # noqa: ANN401
        """A row of ``table`` read from line ``number``, which no logger wrote."""
        head = {"pass": self.pass_name, "raw_file": self.raw_file, "raw_line": number}
        return self._put(table, head | columns)

    def _put(self, table: str, row: Row) -> Row:
        self._rows.setdefault(table, []).append(row)
        self._held += _ROW + len(row.get("text") or "")
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
        """The rank in a message, or the one known of its process."""
        return self.keys.rank(message.pid) if message.rank is None else message.rank

    def full(self) -> Iterator[tuple[str, pl.DataFrame]]:
        """Once rows have grown many, all but the newest, which may still change."""
        if self._held <= _MOST:
            return
        self._held //= 10
        for table, rows in self._rows.items():
            old, rows[:] = rows[: -len(rows) // 10], rows[-len(rows) // 10 :]
            if old:
                yield table, from_rows(table, map(self._finished, old))
            for row in old:
                row.clear()

    def frames(self) -> dict[str, pl.DataFrame]:
        """The tables, with their declared columns; a rank learnt late counts for earlier lines."""
        return {
            name: from_rows(name, map(self._finished, rows)) for name, rows in self._rows.items()
        }

    def _finished(self, row: Row) -> Row:
        pid = row.pop(_PID, None)
        if row.get("rank") is None:
            row["rank"] = self.keys.rank(pid)
        return row


def heads(*words: str) -> re.Pattern[str]:
    """Matches the line feed before a line that begins with one of ``words``."""
    return re.compile(rf"\n(?={'|'.join(map(re.escape, words))})")


def split_at(text: str, heads: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """Cut ``text`` before lines with a known head: (offset of the first line, the lines)."""
    start = offset = 0
    for head in heads.finditer(text):
        yield offset, text[start : head.start()]
        offset += text.count("\n", start, head.end())
        start = head.end()
    yield offset, text[start:]
