"""What could not be read: counted by file and kind, with the first place and an example."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import polars as pl

from traceview.errors import TimeIsUp, described
from traceview.tables import from_rows

EXAMPLE_CHARACTERS = 200
#: Spans of a profiler trace whose category is not known here: of another accelerator, perhaps.
UNKNOWN_CATEGORY = "unknown_category"
#: A defect of ours: the record, or the rest of the file, is not read.
READER_FAILED = "reader_failed"


def failure(error: BaseException) -> tuple[str, str]:
    """(kind, what) of what ended the reading of a file, and is not about the file itself."""
    if isinstance(error, TimeIsUp):
        return "took_too_long", str(error)
    if isinstance(error, MemoryError):
        return "out_of_memory", "reading it takes more memory than there may be"
    return READER_FAILED, described(error)


class Damage(msgspec.Struct):
    """Counts of damage, kept while files are read; ``frame`` makes the table ``unreadable``."""

    #: By file and kind: columns of the table.
    _entries: dict[tuple[str, str], dict[str, Any]] = {}

    def count(
        self, file: str, kind: str, first_line: int | None, example: str, *, times: int = 1
    ) -> None:
        """``times`` more pieces of damage of ``kind`` in ``file`` (relative to the run folder)."""
        entry = self._entries.get((file, kind))
        if entry is None:
            entry = {"file": file, "kind": kind, "times": times, "first_line": first_line}
            self._entries[file, kind] = entry | {"example": example[:EXAMPLE_CHARACTERS]}
        else:
            entry["times"] += times

    def kinds(self) -> Iterator[tuple[str, int, str]]:
        """Kind, times and example of each kind of every file."""
        for entry in self._entries.values():
            yield entry["kind"], entry["times"], entry["example"]

    @property
    def total(self) -> int:
        """Pieces of damage of every kind."""
        return sum(entry["times"] for entry in self._entries.values())

    def frame(self, pass_name: str, rank: int | None = None) -> pl.DataFrame:
        """Table ``unreadable``."""
        head = {"pass": pass_name, "rank": rank}
        return from_rows("unreadable", (head | entry for entry in self._entries.values()))
