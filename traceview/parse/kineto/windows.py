"""Which trace files a pass has, by the collector's ``profile`` events."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from traceview.parse.collected.events import read_processes
from traceview.parse.damage import Damage
from traceview.run import PassRecord, Run


@dataclass(frozen=True, slots=True)
class Window:
    """One trace file: where it is, what it is named in tables, and whose it is."""

    path: Path
    name: str
    pid: int
    rank: int | None
    stance: str


def windows(run: Run, record: PassRecord) -> list[Window]:
    """The last trace of each rank and stance; the processes stand in order of their start.

    A second process of the same rank (a forked worker that compiles too) is left out: its times
    and row numbers have nothing to do with the first one's. Damage to the events is counted by
    their own reader.
    """
    folder = run.raw(record)
    found: dict[tuple[int | None, str], Window] = {}
    for process in read_processes(folder, record.raw, Damage()):
        for event in process.of("profile"):
            file, stance = event.get("file"), event.get("stance")
            if not isinstance(file, str) or not isinstance(stance, str):
                continue
            path = folder / file
            if not path.resolve().is_relative_to(folder.resolve()):
                continue
            key = (process.rank, stance)
            if key not in found or found[key].pid == process.pid:
                found[key] = Window(path, f"{record.raw}/{file}", process.pid, process.rank, stance)
    return list(found.values())
