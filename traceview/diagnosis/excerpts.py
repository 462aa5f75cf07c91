"""Lines of the user's source around what the report names, read from the run's own copies only."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from traceview.diagnosis.model import SourceExcerpt
from traceview.run import Run
from traceview.tables import Tables

AROUND = 3
MOST_EXCERPTS = 80
MOST_BYTES = 2_000_000
LINE_CHARACTERS = 300

Place = tuple[str | None, int | None]


def source_reader(run: Run, tables: Tables) -> Callable[[str], str | None]:
    """A function from a user's file name to the text of its copy; None where the run has none.

    Only files that table ``sources`` lists can be read, and only copies inside the run folder
    (links resolved) of a source's size: a path that a log names is never opened.
    """
    copies = dict(tables["sources"].select("file", "copy").iter_rows())
    root = (run.folder / "raw" / "sources").resolve()

    @cache
    def read(file: str) -> str | None:
        copy = copies.get(file)
        if not copy:
            return None
        try:
            real: Path = (run.folder / copy).resolve()
            if not real.is_relative_to(root) or real.stat().st_size > MOST_BYTES:
                return None
            return real.read_text(encoding="utf-8", errors="replace")
        except (OSError, ValueError):
            return None

    return read


def excerpts(
    read: Callable[[str], str | None], places: Iterable[Place]
) -> tuple[SourceExcerpt, ...]:
    """One excerpt for each different place that can be read, in order; at most MOST_EXCERPTS."""
    found: dict[tuple[str, int], SourceExcerpt] = {}
    for file, line in places:
        if file is None or line is None or (file, line) in found:
            continue
        lines = (read(file) or "").split("\n")
        if lines != [""] and 1 <= line <= len(lines):
            numbers = range(max(1, line - AROUND), min(len(lines), line + AROUND) + 1)
            shown = ((n, lines[n - 1].rstrip("\r")[:LINE_CHARACTERS]) for n in numbers)
            found[file, line] = SourceExcerpt(file, line, tuple(shown))
        if len(found) == MOST_EXCERPTS:
            break
    return tuple(found.values())
