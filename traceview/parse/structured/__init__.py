"""The structured log (TORCH_TRACE): one pass over each file, one parser for each kind of record.

``parse.cutting`` cuts the bytes into records, ``kinds`` lists the parsers, ``state`` keeps what is
known of each process while its log is read, ``reading`` gives tables in batches. Nothing is judged
here, and nothing that a log holds is imported, evaluated or opened.
"""

from __future__ import annotations

from traceview.parse.damage import Damage
from traceview.parse.merge import Frames, gathered
from traceview.parse.structured.reading import read_path, read_stream
from traceview.parse.structured.state import TABLES
from traceview.run import PassRecord, Run

__all__ = ["TABLES", "read_pass", "read_path", "read_stream"]


def read_pass(run: Run, record: PassRecord, damage: Damage) -> Frames:
    """Tables of every structured log of one pass; an empty dict where the pass has none."""
    folder = run.raw(record) / "structured"
    files = sorted(p for p in folder.glob("*.log*") if p.is_file()) if folder.is_dir() else []
    return gathered(
        batch
        for path in files
        for batch in read_path(path, run.relative(path), damage, pass_name=record.name)
    )
