"""Table ``source_lines``: the user's own text at the lines that call torch.compile.

It is read from the run's copies, so that a change can be shown against the line that ran.
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from traceview.tables import Tables, from_rows

LINE_CHARACTERS = 300


def source_lines(tables: Tables, read_source: Callable[[str], str | None]) -> pl.DataFrame:
    """Table ``source_lines``; ``read_source`` gives a file's text, None where there is no copy."""
    places = tables["regions"].select("pass", file="call_file", line="call_line")
    rows = []
    for place in places.drop_nulls().unique(maintain_order=True).iter_rows(named=True):
        lines = (read_source(place["file"]) or "").split("\n")
        if 1 <= place["line"] <= len(lines):
            text = lines[place["line"] - 1].rstrip()
            if text.strip() and len(text) <= LINE_CHARACTERS:
                rows.append({**place, "text": text})
    return from_rows("source_lines", rows)
