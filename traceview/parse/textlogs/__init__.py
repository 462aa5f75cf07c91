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

from traceview.inputs.streams import Stream
from traceview.parse.damage import Damage
from traceview.parse.files import damage_kind, find, opened
from traceview.parse.keys import CompileKeys
from traceview.parse.messages import (
    LEVELS,
    Foreign,
    Lines,
    Message,
    Piece,
    Wanted,
    pieces,
)
from traceview.parse.textlogs.between import Between, ForeignLines, RawLines
from traceview.parse.textlogs.cudagraphs import Cudagraphs
from traceview.parse.textlogs.dynamo import GraphBreaks, Recompiles
from traceview.parse.textlogs.fusions import Fusions
from traceview.parse.textlogs.inductor import PerfHints, Schedules
from traceview.parse.textlogs.inductor_metrics import InductorMetrics
from traceview.parse.textlogs.output_code import OutputCode
from traceview.parse.textlogs.sink import Reader, Sink
from traceview.parse.textlogs.torch_warnings import TorchWarnings
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

    A table is there, without rows perhaps, where the logs would have told: its artifact was asked
    for in TORCH_LOGS and the log file exists. graph_breaks and recompiles have origin ``text``.
    """
    sink = Sink(record.name, keys or CompileKeys(record.name))
    readers = _Readers(sink)
    seen: _Seen = set()
    logs, stderr = find(run.raw(record), LOGS), find(run.raw(record), STDERR)
    if logs is not None:
        sink.raw_file = run.relative(logs)
        sink.looked(_enabled(record.environment.get("TORCH_LOGS", "")))
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
    between them, which are no damage. What no message of any artifact tells of has no table.
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


def _enabled(torch_logs: str) -> Iterator[str]:
    """Tables that the artifacts in TORCH_LOGS fill (``name``, ``+name``; ``-name`` is off)."""
    for name in re.split(r"[\s,]+", torch_logs):
        yield from TABLES_OF.get(name.removeprefix("+"), ())
