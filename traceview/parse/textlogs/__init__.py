"""Text logs: ``torch_logs.txt`` (TORCH_LOGS_OUT) and ``stderr.txt`` of one pass.

Torch's loggers write to both; the log file is read for everything, stderr for what only stands
there: autotuning tables, Python's warnings, messages of processes that have no log file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Protocol

import polars as pl

from traceview.inputs.streams import Stream
from traceview.parse.damage import Damage
from traceview.parse.files import damage_kind, find, opened
from traceview.parse.keys import CompileKeys
from traceview.parse.messages import (
    LEVELS,
    End,
    Foreign,
    Lines,
    Message,
    Piece,
    Wanted,
    clean,
    pieces,
)
from traceview.parse.textlogs.autotune import Autotune
from traceview.parse.textlogs.cudagraphs import Cudagraphs, Overwrites
from traceview.parse.textlogs.dynamo import GraphBreaks, Recompiles
from traceview.parse.textlogs.inductor import (
    Fusions,
    InductorMetrics,
    OutputCode,
    PerfHints,
    Schedules,
)
from traceview.parse.textlogs.sink import RawLine, Reader, Sink
from traceview.parse.textlogs.warnings import CppWarnings, PythonWarnings, TorchWarnings
from traceview.run import PassRecord, Run

LOGS, STDERR = "torch_logs.txt", "stderr.txt"
TABLES_OF = {
    "graph_breaks": ("graph_breaks",),
    "recompiles": ("recompiles",),
    "recompiles_verbose": ("recompiles",),
    "fusion": ("fusions",),
    "perf_hints": ("perf_hints",),
    "inductor_metrics": ("inductor_metrics",),
    "schedule": ("schedules",),
    "cudagraphs": ("cudagraph_events",),
    "output_code": ("graphs", "generated_kernels"),
}
Batches = Iterator[tuple[str, pl.DataFrame]]
_Seen = set[tuple[int, str, str, int]]
_MOST_SEEN = 100_000


def read_pass(
    run: Run, record: PassRecord, damage: Damage, keys: CompileKeys | None = None
) -> dict[str, pl.DataFrame]:
    """Tables of one pass's text logs; ``keys`` names the compiles (default: all of epoch 0).

    A table is there, without rows perhaps, where the logs could have any: its artifact was asked
    for in TORCH_LOGS and the log file exists. graph_breaks and recompiles have origin ``text``.
    """
    sink = Sink(record.name, keys or CompileKeys(record.name))
    readers = _Readers(sink)
    seen: _Seen = set()
    logs, stderr = find(run.raw(record), LOGS), find(run.raw(record), STDERR)
    if logs is not None:
        sink.raw_file = run.relative(logs)
        # TORCH_LOGS names artifacts: ``name`` and ``+name`` are on, ``-name`` is off
        asked = re.split(r"[\s,]+", record.environment.get("TORCH_LOGS", ""))
        for artifact in asked:
            sink.looked(TABLES_OF.get(artifact.removeprefix("+"), ()))
        _read_logs(logs, sink, readers, seen, damage)
    if stderr is not None:
        sink.raw_file = run.relative(stderr)
        sink.looked(("autotune_choices",))
        _read_stderr(stderr, sink, readers, seen, damage, logged=logs is not None)
    if logs is not None or stderr is not None:
        sink.looked(("warnings",))
    return sink.frames()


def read_stream(stream: Stream, name: str, damage: Damage, *, pass_name: str = "logs") -> Batches:
    """Tables of a text log or a capture of stderr from anywhere, in batches of rows.

    Everything is looked for: what was captured with torch's messages, and other people's lines
    between them, which are no damage. A table that no message has rows for is absent.
    """
    return read_pieces(partial(pieces, stream), name, damage, pass_name=pass_name)


def read_pieces(
    found: Callable[[Wanted], Iterator[Piece]],
    name: str,
    damage: Damage,
    *,
    pass_name: str = "logs",
) -> Batches:
    """The same of a log that ``found`` takes apart, here or in another process."""
    sink = Sink(pass_name, CompileKeys(pass_name))
    sink.raw_file = name
    readers, raw = _Readers(sink), RawLines(sink, damage)
    sink.looked(("warnings",))
    for message in _messages(found(Wanted(readers.artifacts, raw.needles)), name, raw, damage):
        readers.read(message)
        yield from sink.full()
    yield from sink.frames().items()


class _Readers:
    """A reader for every artifact that is understood, and one for loggers' warnings."""

    def __init__(self, sink: Sink) -> None:
        recompiles = Recompiles(sink)
        self._warnings = TorchWarnings(sink)
        self._of: dict[str | None, Reader] = {
            "graph_breaks": GraphBreaks(sink),
            "recompiles": recompiles,
            "recompiles_verbose": recompiles,
            "fusion": Fusions(sink),
            "perf_hints": PerfHints(sink),
            "inductor_metrics": InductorMetrics(sink),
            "schedule": Schedules(sink),
            "cudagraphs": Cudagraphs(sink),
            "output_code": OutputCode(sink),
        }
        self.artifacts = frozenset(filter(None, self._of))

    def read(self, message: Message) -> None:
        """Pass a message to whom it concerns."""
        if (reader := self._of.get(message.artifact)) is not None:
            reader.message(message)
        if message.level in LEVELS:
            self._warnings.message(message)


def _read_logs(path: Path, sink: Sink, readers: _Readers, seen: _Seen, damage: Damage) -> None:
    """A file in which only torch writes, in whole lines."""
    foreign = ForeignLines(sink.raw_file, damage)
    wanted = Wanted(readers.artifacts, foreign.needles)
    for message in _of_file(path, wanted, sink.raw_file, foreign, damage):
        if message.level in LEVELS and len(seen) < _MOST_SEEN:
            seen.add(_identity(message))
        readers.read(message)


def _read_stderr(
    path: Path, sink: Sink, readers: _Readers, seen: _Seen, damage: Damage, *, logged: bool
) -> None:
    """What anybody writes, and of torch's messages those that the log file lacks."""
    raw = RawLines(sink, damage)
    wanted = Wanted(frozenset() if logged else readers.artifacts, raw.needles)
    for message in _of_file(path, wanted, sink.raw_file, raw, damage):
        if not logged or _identity(message) not in seen:
            readers.read(message)


def _of_file(
    path: Path, wanted: Wanted, name: str, between: Between, damage: Damage
) -> Iterator[Message]:
    """Messages of a file; one that can't be read is damage, not an error."""
    try:
        with opened(path) as stream:
            yield from _messages(pieces(stream, wanted), name, between, damage)
    except OSError as error:
        damage.count(name, damage_kind(error), None, str(error))


def _messages(
    found: Iterator[Piece], name: str, between: Between, damage: Damage
) -> Iterator[Message]:
    for piece in found:
        if isinstance(piece, Lines):
            yield piece.message()
        elif isinstance(piece, Foreign):
            between.read(piece)
        else:
            between.end(piece)
            if piece.damage is not None:
                kind, what = piece.damage
                damage.count(name, kind, piece.line, what)


def _identity(message: Message) -> tuple[int, str, str, int]:
    return (message.pid, message.stamp, message.source, message.source_line)


class Between(Protocol):
    """A reader of what stands between the messages."""

    #: What a line must hold to be of interest.
    needles: tuple[bytes, ...]

    def read(self, foreign: Foreign) -> None:
        """Lines, some of which may be of interest."""

    def end(self, end: End) -> None:
        """There are no more lines."""


class ForeignLines:
    """Counts the lines between messages that are not blank."""

    needles: tuple[bytes, ...] = (b"",)

    def __init__(self, name: str, damage: Damage) -> None:
        self._name = name
        self._damage = damage
        self._times = 0
        self._first: RawLine | None = None

    def read(self, foreign: Foreign) -> None:
        for number, line in foreign.numbered:
            if line and not line.isspace():
                self._times += 1
                if self._first is None:
                    self._first = RawLine(number, line)

    def end(self, end: End) -> None:
        if self._first is not None:
            number, data = self._first
            self._damage.count(self._name, "foreign_line", number, clean(data), times=self._times)
        if end.incomplete and end.damage is None:
            self._damage.count(self._name, "truncated", end.line, "the last line has no end")


class RawLines:
    """Autotuning tables and warnings in the lines between messages.

    A line is looked at if it may begin one, or while one is open.
    """

    needles: tuple[bytes, ...] = (
        b"Warning: ",
        b".cpp:",
        b"AUTOTUNE ",
        b"utotune Choices Stats:",
        b"output of CUDAGraphs that has been overwritten",
    )

    def __init__(self, sink: Sink, damage: Damage) -> None:
        self._autotune = Autotune(sink, damage)
        others = (PythonWarnings(sink), CppWarnings(sink), Overwrites(sink))
        self._readers = (self._autotune, *others)
        self._open = False

    def read(self, foreign: Foreign) -> None:
        self._autotune.after = foreign
        needles = [needle for needle in self.needles if needle in foreign.data]
        if not self._open and not needles:
            return
        for number, line in foreign.numbered:
            if self._open or any(needle in line for needle in needles):
                self._line(number, line)

    def end(self, end: End) -> None:  # noqa: ARG002
        """What is open is complete."""
        for reader in self._readers:
            reader.end()

    def _line(self, number: int, line: bytes) -> None:
        for part in line.removesuffix(b"\r").split(b"\r"):
            for reader in self._readers:
                reader.line(RawLine(number, part))
        self._open = any(reader.open for reader in self._readers)
