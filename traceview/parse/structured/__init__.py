"""The structured log (TORCH_TRACE): one pass over each file, one parser for each kind of record.

``parse.cutting`` cuts the bytes into records, ``kinds`` lists the parsers, ``state`` keeps what is
known of each process while its log is read, ``reading`` gives tables in batches. Nothing is judged
here, and nothing that a log holds is imported, evaluated or opened.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from traceview.parse.damage import Damage
from traceview.parse.structured.reading import Batches, read_path, read_stream, write_tables
from traceview.parse.structured.state import TABLES
from traceview.run import PassRecord, Run

__all__ = ["TABLES", "read_file", "read_pass", "read_path", "read_stream", "write_tables"]


def read_pass(run: Run, record: PassRecord, damage: Damage) -> dict[str, pl.DataFrame]:
    """Tables of every structured log of one pass; an empty dict where the pass has none."""
    folder = run.raw(record) / "structured"
    files = sorted(p for p in folder.glob("*.log*") if p.is_file()) if folder.is_dir() else []
    batches = (
        batch
        for path in files
        for batch in read_path(path, run.relative(path), damage, pass_name=record.name)
    )
    return _frames(batches) if files else {}


def read_file(
    path: Path, damage: Damage, *, pass_name: str = "logs", name: str | None = None
) -> dict[str, pl.DataFrame]:
    """Tables of one TORCH_TRACE file, gzipped or not; ``name`` is what ``raw_file`` says.

    A file that can't be read or unpacked to its end is counted in ``damage``; what was read stays.
    """
    return _frames(read_path(path, name or path.name, damage, pass_name=pass_name))


def _frames(batches: Batches) -> dict[str, pl.DataFrame]:
    found: dict[str, list[pl.DataFrame]] = {name: [] for name in TABLES}
    for table, frame in batches:
        found[table].append(frame)
    return {name: pl.concat(frames, rechunk=False) for name, frames in found.items() if frames}
