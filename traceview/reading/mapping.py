"""The map: one log to one part, in whatever process an executor runs it."""

from __future__ import annotations

import shutil
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import msgspec
import polars as pl

from traceview.inputs import READ_ERRORS, Source, damage_of
from traceview.parse.damage import Damage
from traceview.parse.pieces import in_pieces, write_piece
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


def read(task: Task) -> parts.Part:
    """Read the log of ``task``, write its tables and then its JSON."""
    source, damage = task.source, Damage()
    part = _empty(source, task.part)
    folder = _fresh(task)
    log, seen = Log(source, task.part, damage), Processes(source)
    with _Writer(folder, part) as writer:
        try:
            for name, frame in in_pieces(parse(log)):
                writer.add(name, frame)
                seen.add(name, frame)
        except READ_ERRORS as error:
            kind, part.error = damage_of(error)
            damage.count(source.name, kind, None, part.error)
        if damage.total:
            writer.add("unreadable", damage.frame("logs"))
    part.damaged, part.bytes_read = damage.total, _bytes_of(log)
    part.processes = seen.found()
    parts.save(Path(task.run), part)
    return part


def _bytes_of(log: Log) -> int | None:
    with suppress(OSError):  # it may be gone by now
        return log.bytes_read
    return None


def lost(task: Task, error: Exception) -> parts.Part:
    """The part of a log whose reader died: it says so, and counts as damage."""
    source, damage = task.source, Damage()
    damage.count(source.name, "reader_died", None, str(error))
    part = _empty(source, task.part)
    part.error, part.damaged = str(error), 1
    with _Writer(_fresh(task), part) as writer:
        writer.add("unreadable", damage.frame("logs"))
    part.processes = Processes(source).found()
    parts.save(Path(task.run), part)
    return part


def _empty(source: Source, name: str) -> parts.Part:
    return parts.Part(
        part=name, name=source.name, url=source.url, kind=source.kind,
        stamp=source.stamp, size=source.size, folder=source.name.rpartition("/")[0],
    )  # fmt: skip


def _fresh(task: Task) -> Path:
    """The part's folder, without what a reader that died left in it."""
    folder = Path(task.run) / parts.FOLDER / task.part
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


class _Writer:
    """Writes pieces of tables, one behind the reading."""

    def __init__(self, folder: Path, part: parts.Part) -> None:
        self._folder, self._part = folder, part
        self._thread = ThreadPoolExecutor(1)
        self._last: Future[None] | None = None

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *error: object) -> None:
        self._thread.shutdown()
        if self._last is not None:
            self._last.result()

    def add(self, name: str, frame: pl.DataFrame) -> None:
        """Write ``frame`` as the next piece of table ``name`` (kept even without rows)."""
        piece = self._part.tables.setdefault(name, 0)
        if frame.is_empty():
            return
        if self._last is not None:
            self._last.result()
        path = self._folder / f"{name}.{piece}.parquet"
        self._last = self._thread.submit(write_piece, frame.drop("pass"), path)
        self._part.tables[name] += 1
        self._part.rows += frame.height
