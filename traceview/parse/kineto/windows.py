"""Which trace files a pass has, by the collector's ``profile`` events."""

from __future__ import annotations

from pathlib import Path

import msgspec

from traceview.parse.collected.events import Event, read_processes
from traceview.parse.damage import Damage
from traceview.run import PassRecord, Run


class Window(msgspec.Struct, frozen=True):
    """One trace file: where it is, what it is named in tables, and whose it is.

    ``line_files``: of a lines window, the files by the index that its marks have; else None.
    """

    path: Path
    name: str
    pid: int
    rank: int | None
    stance: str
    line_files: tuple[str | None, ...] | None = None


def windows(run: Run, record: PassRecord) -> list[Window]:
    """The last trace of each rank, stance and purpose; the processes stand in order of their start.

    A second process of the same rank (a forked worker that compiles too) is left out: its times
    and row numbers have nothing to do with the first one's. Damage to the events is counted by
    their own reader.
    """
    folder = run.raw(record)
    found: dict[tuple[int | None, str, bool], Window] = {}
    for process in read_processes(folder, record.raw, Damage()):
        for event in process.of("profile"):
            file, stance = event.get("file"), event.get("stance")
            if not isinstance(file, str) or not isinstance(stance, str):
                continue
            path = folder / file
            if not path.resolve().is_relative_to(folder.resolve()):
                continue
            lines = _line_files(event)
            key = (process.rank, stance, lines is None)
            if key not in found or found[key].pid == process.pid:
                name = f"{record.raw}/{file}"
                found[key] = Window(path, name, process.pid, process.rank, stance, lines)
    return list(found.values())


def _line_files(event: Event) -> tuple[str | None, ...] | None:
    if event.get("purpose") != "lines":
        return None
    files = event.get("line_files")
    named = files if isinstance(files, list) else []
    return tuple(file if isinstance(file, str) else None for file in named)
