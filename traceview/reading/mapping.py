"""The map: one log to one part, in whatever process an executor runs it.

Each kind of log has its parser, which gives tables, whole or in batches.
"""

from __future__ import annotations

import multiprocessing
import re
import resource
import shutil
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import msgspec
import polars as pl

from traceview import limits
from traceview.derive.job.divergence import Digests
from traceview.errors import TimeIsUp, is_defect
from traceview.inputs import READ_ERRORS, Counted, Source, Stream, as_text, damage_of
from traceview.limits import Limits
from traceview.parse import chromium, collected, kineto, structured, textlogs
from traceview.parse.damage import Damage, failure
from traceview.parse.files import rank_in_name
from traceview.parse.messages.finding import pieces, pieces_ahead
from traceview.parse.messages.shapes import End, Piece, Wanted
from traceview.parse.store import Writer, in_pieces
from traceview.reading import parts
from traceview.reading.executors import WorkerDied
from traceview.reading.processes import Processes
from traceview.tables import scan_parquet

Batches = Iterator[tuple[str, pl.DataFrame]]
#: A text log from this size on takes two processes; packed, it is a tenth.
AHEAD_BYTES = 16 << 20
_PACKED_TIMES = 10
_STANCE = re.compile(r"(?:^|/)(eager|compiled)-\d+(?:-\d+)?(-lines)?\.json")


class Task(msgspec.Struct, frozen=True):
    """One log to read, and the run folder that gets its part."""

    source: Source
    run: str
    limits: Limits = msgspec.field(default_factory=lambda: limits.now)

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
    # what a reader that died left there
    shutil.rmtree(Path(task.run) / parts.FOLDER / task.part, ignore_errors=True)
    part, folder = _begun(task)
    log, seen = Log(source, task.part, damage), Processes(source)
    with Writer(folder) as writer:
        try:
            with limits.used(task.limits), _in_time(source):
                for name, frame in in_pieces(_fitting(parse(log), log)):
                    writer.add(name, frame)
                    seen.add(name, frame)
        except BaseException as error:
            if not is_defect(error):
                raise
            of_file = isinstance(error, READ_ERRORS)
            kind, part.error = damage_of(error) if of_file else failure(error)
            damage.count(source.name, kind, None, part.error)
        if damage.total:
            writer.add("unreadable", damage.frame("logs"))
    part.tables, part.rows, part.damaged = writer.written, writer.rows, damage.total
    with suppress(OSError):  # it may be gone by now
        part.bytes_read = log.bytes_read
    part.processes = seen.found()
    parts.save(Path(task.run), part)
    return part


@contextmanager
def _in_time(source: Source) -> Iterator[None]:
    """TimeIsUp in here when the file has taken as much CPU time as it may.

    A process of its own that hears nothing is killed some time later.
    """
    if threading.current_thread() is not threading.main_thread():  # of a Dask worker
        yield
        return
    size = (source.size or 1 << 34) * (_PACKED_TIMES if source.packed else 1)
    most = limits.now.seconds + size / 1e6

    def over(_number: int, _frame: object) -> None:
        raise TimeIsUp(f"reading it takes more than {most:,.0f} s of CPU time")

    soft, hard = resource.getrlimit(resource.RLIMIT_CPU)
    if multiprocessing.parent_process() is not None:
        resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time() + 1.5 * most) + 10, hard))
    former = signal.signal(signal.SIGPROF, over)
    signal.setitimer(signal.ITIMER_PROF, most, 10)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, former)
        resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def _fitting(batches: Batches, log: Log) -> Batches:
    """``batches`` without the rows of a table that are beyond the limit."""
    rows: Counter[str] = Counter()
    for name, frame in batches:
        room = limits.now.rows - rows[name]
        if frame.height > room:
            log.damage.count(log.name, "too_many_rows", None, name, times=frame.height - room)
            frame = frame.head(room)
        rows[name] += frame.height
        yield name, frame


def lost(task: Task, error: Exception) -> parts.Part:
    """The part of a log whose reader died: it says so, counts as damage, and has what was written
    before."""
    source, damage = task.source, Damage()
    died = isinstance(error, WorkerDied)
    kind, what = ("reader_died", str(error)) if died else failure(error)
    damage.count(source.name, kind, None, what)
    part, folder = _begun(task)
    seen = Processes(source)
    with Writer(folder) as writer:
        for path in sorted(folder.glob("*.parquet")):
            table = path.name.partition(".")[0]
            try:
                frame = scan_parquet([path]).collect()
            except (pl.exceptions.PolarsError, OSError):  # it was being written
                path.unlink()
                continue
            writer.keep(table, frame, path)
            seen.add(table, frame)
        writer.add("unreadable", damage.frame("logs"))
    part.tables, part.rows, part.damaged, part.error = writer.written, writer.rows, 1, what
    part.processes = seen.found()
    parts.save(Path(task.run), part)
    return part


def _begun(task: Task) -> tuple[parts.Part, Path]:
    """The part, and its folder."""
    folder = Path(task.run) / parts.FOLDER / task.part
    folder.mkdir(parents=True, exist_ok=True)
    source, above = task.source, task.source.name.rpartition("/")[0]
    url = as_text(source.url)
    part = parts.Part(task.part, source.name, url, source.kind, source.stamp, folder=above)
    part.size = source.size
    return part, folder


class Log:
    """A log while it is read; ``part`` stands in its keys where other runs have the pass.

    ``told`` are the bytes that another process has counted, once it has come to the end.
    """

    def __init__(self, source: Source, part: str, damage: Damage) -> None:
        self.source, self.part, self.damage = source, part, damage
        self._counted: Counted | None = None
        self.told: int | None = None

    @property
    def name(self) -> str:
        return self.source.name

    def open(self) -> Stream:
        """The source, opened; a file whose bytes are the log's own is not counted: it can seek."""
        stream = self.source.open()
        if self.source.path is None:
            stream = self._counted = Counted(stream)
        return stream

    def pieces(self, wanted: Wanted) -> Iterator[Piece]:
        """A text log taken apart; a large one by another process, which also counts its bytes."""
        size = (self.source.size or 0) * (_PACKED_TIMES if self.source.packed else 1)
        if self.source.local is not None and size >= AHEAD_BYTES:
            for piece in pieces_ahead(self.source, wanted):
                if isinstance(piece, End):
                    self.told = piece.bytes_read
                yield piece
        else:
            with self.open() as stream:
                yield from pieces(stream, wanted)

    @contextmanager
    def local(self) -> Iterator[Path]:
        """A file that has the log's own bytes: the log itself, or a copy."""
        if self.source.path is not None:
            yield self.source.path
            return
        with tempfile.NamedTemporaryFile() as copy:
            try:
                with self.open() as stream:
                    while block := stream.read(1 << 20):
                        copy.write(block)
            except READ_ERRORS as error:  # what came before it is read
                kind, what = damage_of(error)
                self.damage.count(self.name, kind, None, what)
            copy.flush()
            yield Path(copy.name)

    @property
    def bytes_read(self) -> int | None:
        """Unpacked bytes that were read; of a file, all that it has."""
        if self.told is not None:
            return self.told
        if self._counted is not None:
            return self._counted.given
        return self.source.path.stat().st_size if self.source.path is not None else None


def parse(log: Log) -> Batches:
    """Tables of one log."""
    match log.source.kind:
        case "structured":
            # With digests that compare compiles across ranks, made while texts are there.
            digests, path = Digests(), log.source.path
            with ExitStack() as opened:
                if path is not None:
                    read = structured.read_path(path, log.name, log.damage, pass_name=log.part)
                else:
                    stream = opened.enter_context(log.open())
                    read = structured.read_stream(stream, log.name, log.damage, pass_name=log.part)
                for name, frame in read:
                    digests.see(name, frame)
                    yield name, frame
            yield "compile_digests", digests.frame()
        case "textlog" | "stderr":
            read = textlogs.read_pieces(log.pieces, log.name, log.damage, pass_name=log.part)
            yield from read
        case "kineto":
            named = _STANCE.search(log.name)
            if named is not None and named[2]:
                return  # a step with the user's lines marked: its times say nothing
            stance = named[1] if named else None
            local = None if log.source.prefix else log.source.local
            with kineto.rest_begun(local) as rest, log.open() as stream:
                yield from kineto.read_stream(
                    stream,
                    log.name,
                    log.damage,
                    pass_name=log.part,
                    rank=rank_in_name(log.name),
                    stance=stance,
                    rest=rest,
                )
                if rest and log.source.path is None:
                    log.told = rest.bytes_read
        case "chromium":
            with log.open() as stream:
                yield from chromium.read_stream(stream, log.name, log.damage, pass_name=log.part)
        case "events":
            with log.local() as path:
                yield from collected.read_file(path, log.name, log.damage).items()
