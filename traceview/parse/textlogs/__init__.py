"""Text logs: ``torch_logs.txt`` (TORCH_LOGS_OUT) and ``stderr.txt`` of one pass.

Torch's loggers write to both; the log file is read for everything, stderr for what only stands
there: autotuning tables, Python's warnings, messages of processes that have no log file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import polars as pl

from traceview import limits
from traceview.errors import described, spared
from traceview.parse.damage import READER_FAILED, Damage
from traceview.parse.files import damage_kind, find, opened
from traceview.parse.keys import CompileKeys
from traceview.parse.messages.finding import pieces
from traceview.parse.messages.shapes import (
    LEVELS,
    End,
    Foreign,
    Lines,
    Message,
    Piece,
    Wanted,
    clean,
)
from traceview.parse.textlogs.autotune import Autotune
from traceview.parse.textlogs.dynamo import graph_breaks, recompiles
from traceview.parse.textlogs.inductor import (
    Cudagraphs,
    Fusions,
    OutputCode,
    Overwrites,
    PerfHints,
    inductor_metrics,
    schedules,
)
from traceview.parse.textlogs.sink import RawLine, Sink
from traceview.parse.textlogs.warnings import CppWarnings, PythonWarnings, torch_warnings
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


def read_pass(
    run: Run, record: PassRecord, damage: Damage, keys: CompileKeys | None = None
) -> dict[str, pl.DataFrame]:
    """Tables of one pass's text logs; ``keys`` names the compiles (default: all of epoch 0).

    A table is there, without rows perhaps, where the logs could have any: its artifact was asked
    for in TORCH_LOGS and the log file exists. graph_breaks and recompiles have origin ``text``.
    """
    sink = Sink(record.name, keys or CompileKeys(record.name))
    readers = _Readers(sink, damage)
    seen: set[tuple[int, str, str, int]] = set()
    logs, stderr = find(run.raw(record), LOGS), find(run.raw(record), STDERR)
    if logs is not None:
        sink.raw_file = run.relative(logs)
        # TORCH_LOGS names artifacts: ``name`` and ``+name`` are on, ``-name`` is off
        asked = re.split(r"[\s,]+", record.environment.get("TORCH_LOGS", ""))
        for artifact in asked:
            sink.looked(TABLES_OF.get(artifact.removeprefix("+"), ()))
        foreign = ForeignLines(sink.raw_file, damage)  # only torch writes here, in whole lines
        wanted = Wanted(readers.artifacts, foreign.needles)
        for message in _of_file(logs, wanted, sink.raw_file, foreign, damage):
            if message.level in LEVELS and len(seen) < limits.now.ids:
                seen.add(_identity(message))
            readers.read(message)
    if stderr is not None:
        sink.raw_file = run.relative(stderr)
        sink.looked(("autotune_choices",))
        raw = RawLines(sink, damage)
        # what anybody writes, and of torch's messages those that the log file lacks
        wanted = Wanted(readers.artifacts if logs is None else frozenset(), raw.needles)
        for message in _of_file(stderr, wanted, sink.raw_file, raw, damage):
            if logs is None or _identity(message) not in seen:
                readers.read(message)
    if logs is not None or stderr is not None:
        sink.looked(("warnings",))
    return sink.frames()


def read_pieces(
    found: Callable[[Wanted], Iterator[Piece]],
    name: str,
    damage: Damage,
    *,
    pass_name: str = "logs",
) -> Batches:
    """Tables of a text log or a capture of stderr from anywhere, in batches of rows.

    ``found`` takes the log apart, here or in another process. Everything is looked for: what was
    captured with torch's messages, and other people's lines between them, which are no damage. A
    table that no message has rows for is absent.
    """
    sink = Sink(pass_name, CompileKeys(pass_name))
    sink.raw_file = name
    readers, raw = _Readers(sink, damage), RawLines(sink, damage)
    sink.looked(("warnings",))
    for message in _messages(found(Wanted(readers.artifacts, raw.needles)), name, raw, damage):
        readers.read(message)
        yield from sink.full()
    yield from sink.frames().items()


class _Readers:
    """A reader for every artifact that is understood, and one for loggers' warnings."""

    def __init__(self, sink: Sink, damage: Damage) -> None:
        self._sink, self._damage = sink, damage
        self._of: dict[str | None, Callable[[Message], None]] = {
            "graph_breaks": partial(graph_breaks, sink),
            "recompiles": partial(recompiles, sink),
            "recompiles_verbose": partial(recompiles, sink),
            "fusion": Fusions(sink).message,
            "perf_hints": PerfHints(sink).message,
            "inductor_metrics": partial(inductor_metrics, sink),
            "schedule": partial(schedules, sink),
            "cudagraphs": Cudagraphs(sink).message,
            "output_code": OutputCode(sink).message,
        }
        self.artifacts = frozenset(filter(None, self._of))

    def read(self, message: Message) -> None:
        """Pass a message to whom it concerns."""
        try:
            if (read := self._of.get(message.artifact)) is not None:
                read(message)
            if message.level in LEVELS:
                torch_warnings(self._sink, message)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - a defect costs its message only
            what = described(error)
            self._damage.count(self._sink.raw_file, READER_FAILED, message.first_line, what)


def _of_file(
    path: Path, wanted: Wanted, name: str, between: ForeignLines | RawLines, damage: Damage
) -> Iterator[Message]:
    """Messages of a file; one that can't be read is damage, not an error."""
    try:
        with opened(path) as stream:
            yield from _messages(pieces(stream, wanted), name, between, damage)
    except OSError as error:
        damage.count(name, damage_kind(error), None, str(error))


def _messages(
    found: Iterator[Piece], name: str, between: ForeignLines | RawLines, damage: Damage
) -> Iterator[Message]:
    messages = 0
    failed = partial(damage.count, name, READER_FAILED, None)
    for piece in found:
        if isinstance(piece, Lines):
            messages += 1
            if messages > limits.now.records:
                what = f"more than {messages - 1} messages"
                damage.count(name, "too_many_records", piece.first_line, what)
                return
            yield piece.message()
        elif isinstance(piece, Foreign):
            with spared(failed):
                between.read(piece)
        else:
            with spared(failed):
                between.end(piece)
            if piece.damage is not None:
                kind, what = piece.damage
                damage.count(name, kind, piece.line, what)


def _identity(message: Message) -> tuple[int, str, str, int]:
    return (message.pid, message.stamp, message.source, message.source_line)


class ForeignLines:
    """Counts the lines between messages that are not blank."""

    #: What a line must hold to be of interest.
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
