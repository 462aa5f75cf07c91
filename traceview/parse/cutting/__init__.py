"""A TORCH_TRACE file cut into records, each proved by its digest.

    cutter    the stream to records; what starts its line and has the right digest is done at once
    careful   the rest: foreign lines, wrong digests, envelopes that are no JSON
    other     the same in a process of its own, for a large file: places are sent, not bytes

Neither polars nor a table is needed here, so that the other process starts at once. It reads the
file, checks every digest and reads what a payload alone can show; of a proven record it sends its
place, its context and what it read. The record's bytes are read when something needs them. Records
and damage come in the same order as from ``cuts``.
A process that dies is no damage: the rest is cut here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from traceview.parse import beside
from traceview.parse.cutting.cutter import Readable, cuts
from traceview.parse.cutting.shapes import (
    DECODER,
    Damaged,
    End,
    Loose,
    Place,
    Record,
    Report,
    Stamp,
)

__all__ = ["AHEAD_BYTES", "Readable", "Record", "Stamp", "cuts", "cuts_ahead", "cutting_begun"]

#: A file from this size on is worth it.
AHEAD_BYTES = 16 << 20
_OTHER = "traceview.parse.cutting.other"
#: glibc would give each block back to the system and request it again: a tenth of the time.
_MALLOC = {"MALLOC_MMAP_THRESHOLD_": f"{1 << 26}", "MALLOC_TRIM_THRESHOLD_": f"{1 << 26}"}


@contextmanager
def cutting_begun(path: Path) -> Iterator[None]:
    """Another process begins with a large file, for ``cuts_ahead`` of the same ``path`` in here."""
    try:
        large = path.stat().st_size >= AHEAD_BYTES
    except OSError:
        large = False
    with beside.begun(_OTHER, [os.fspath(path)], _MALLOC) if large else nullcontext():
        yield


def cuts_ahead(path: Path, report: Report) -> Iterator[Record]:
    """What ``cuts`` gives of the file, cut by another process."""
    last: Place | None = None
    with path.open("rb", buffering=0) as file:
        descriptor = file.fileno()
        loose: list[Loose | Damaged] = []  # behind the last place: cut again if the rest is lost
        for item in beside.received(_OTHER, [os.fspath(path)], DECODER, _MALLOC):
            if isinstance(item, Place):
                if loose:
                    yield from _tell(loose, report)
                item.file = descriptor
                yield item
                last = item
            elif isinstance(item, End):
                yield from _tell(loose, report)
                return
            else:
                loose.append(item)
        offset = last.offset + last.length + 1 if last else 0
        file.seek(offset)
        yield from cuts(file, report, offset, last.line + last.lines if last else 1)


def _tell(loose: list[Loose | Damaged], report: Report) -> Iterator[Record]:
    for item in loose:
        if isinstance(item, Loose):
            yield item.record
        else:
            report(item.kind, item.line, item.example)
    loose.clear()
