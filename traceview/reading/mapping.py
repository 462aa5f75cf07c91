"""The map: one log to one part, in whatever process an executor runs it."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

import msgspec

from traceview.inputs import READ_ERRORS, Source, damage_of
from traceview.parse.damage import Damage
from traceview.parse.store import Writer, in_pieces
from traceview.reading import parts
from traceview.reading.parsers import Log, parse
from traceview.reading.processes import Processes


class Task(msgspec.Struct, frozen=True):
    """One log to read, and the run folder that gets its part."""

    source: Source
    run: str

    @property
    def part(self) -> str:
        return parts.part_name(self.source)

    def kept(self) -> parts.Part | None:
        """The part, if it was read before and the log has not changed since."""
        run = Path(self.run)
        part = parts.load(run, self.part)
        if part is None or part.error is not None or self.source.stamp is None:
            return None
        there = all(p.is_file() for table in part.tables for p in parts.pieces(run, part, table))
        return part if there and part.stamp == self.source.stamp else None


def read(task: Task) -> parts.Part:
    """Read the log of ``task``, write its tables and then its JSON."""
    source, damage = task.source, Damage()
    part, folder = _begun(task)
    log, seen = Log(source, task.part, damage), Processes(source)
    with Writer(folder) as writer:
        try:
            for name, frame in in_pieces(parse(log)):
                writer.add(name, frame)
                seen.add(name, frame)
        except READ_ERRORS as error:
            kind, part.error = damage_of(error)
            damage.count(source.name, kind, None, part.error)
        if damage.total:
            writer.add("unreadable", damage.frame("logs"))
    part.tables, part.rows, part.damaged = writer.written, writer.rows, damage.total
    with suppress(OSError):  # it may be gone by now
        part.bytes_read = log.bytes_read
    part.processes = seen.found()
    parts.save(Path(task.run), part)
    return part


def lost(task: Task, error: Exception) -> parts.Part:
    """The part of a log whose reader died: it says so, and counts as damage."""
    source, damage = task.source, Damage()
    damage.count(source.name, "reader_died", None, str(error))
    part, folder = _begun(task)
    with Writer(folder) as writer:
        writer.add("unreadable", damage.frame("logs"))
    part.tables, part.rows, part.damaged, part.error = writer.written, writer.rows, 1, str(error)
    part.processes = Processes(source).found()
    parts.save(Path(task.run), part)
    return part


def _begun(task: Task) -> tuple[parts.Part, Path]:
    """The part, and its folder without what a reader that died left in it."""
    folder = Path(task.run) / parts.FOLDER / task.part
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    source, above = task.source, task.source.name.rpartition("/")[0]
    part = parts.Part(task.part, source.name, source.url, source.kind, source.stamp, folder=above)
    part.size = source.size
    return part, folder
