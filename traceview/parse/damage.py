"""What could not be read: counted by file and kind, with the first place and an example."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import polars as pl

from traceview.tables import from_rows

EXAMPLE_CHARACTERS = 200


class _Entry(msgspec.Struct):
    times: int
    first_line: int | None
    example: str


class Damage(msgspec.Struct):
    """Counts of damage, kept while files are read; ``frame`` makes the table ``unreadable``."""

    _entries: dict[tuple[str, str], _Entry] = {}

    def count(
        self, file: str, kind: str, first_line: int | None, example: str, *, times: int = 1
    ) -> None:
        """``times`` more pieces of damage of ``kind`` in ``file`` (relative to the run folder)."""
        entry = self._entries.get((file, kind))
        if entry is None:
            self._entries[file, kind] = _Entry(times, first_line, example[:EXAMPLE_CHARACTERS])
        else:
            entry.times += times

    def kinds(self) -> Iterator[tuple[str, int, str]]:
        """Kind, times and example of each kind of every file."""
        for (_, kind), entry in self._entries.items():
            yield kind, entry.times, entry.example

    @property
    def total(self) -> int:
        """Pieces of damage of every kind."""
        return sum(entry.times for entry in self._entries.values())

    def frame(self, pass_name: str, rank: int | None = None) -> pl.DataFrame:
        """Table ``unreadable``."""
        return from_rows(
            "unreadable",
            (
                {
                    "pass": pass_name,
                    "rank": rank,
                    "file": file,
                    "kind": kind,
                    "times": entry.times,
                    "first_line": entry.first_line,
                    "example": entry.example,
                }
                for (file, kind), entry in self._entries.items()
            ),
        )
