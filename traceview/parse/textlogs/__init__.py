"""Text logs: ``torch_logs.txt`` (TORCH_LOGS_OUT) and ``stderr.txt`` of one pass.

Torch's loggers write to both; the log file is read for everything, stderr for what only stands
there: autotuning tables, Python's warnings, messages of processes that have no log file. Files are
read line by line, so that 100 MB of them cost seconds and little memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from traceview.inputs.streams import Stream
from traceview.parse.damage import Damage
from traceview.parse.files import damage_kind, find, opened
from traceview.parse.keys import CompileKeys
from traceview.parse.textlogs.between import ForeignLines, RawLines
from traceview.parse.textlogs.cudagraphs import Cudagraphs
from traceview.parse.textlogs.dynamo import GraphBreaks, Recompiles
from traceview.parse.textlogs.inductor import Fusions, PerfHints, Schedules
from traceview.parse.textlogs.inductor_metrics import InductorMetrics
from traceview.parse.textlogs.messages import Between, Lines, Message, read_messages
from traceview.parse.textlogs.output_code import OutputCode
from traceview.parse.textlogs.sink import Reader, Sink
from traceview.parse.textlogs.torch_warnings import LEVELS, TorchWarnings
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


def read_pass(
    run: Run, record: PassRecord, damage: Damage, keys: CompileKeys | None = None
) -> dict[str, pl.DataFrame]:
    """Tables of one pass's text logs; ``keys`` names the compiles (default: all of epoch 0).

    A table is there, without rows perhaps, where the logs would have told: its artifact was asked
    for in TORCH_LOGS and the log file exists. graph_breaks and recompiles have origin ``text``.
    """
    sink = Sink(record.name, keys or CompileKeys(record.name))
    readers = _readers(sink)
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


def read_stream(
    stream: Stream,
    name: str,
    damage: Damage,
    *,
    pass_name: str = "logs",
    keys: CompileKeys | None = None,
) -> Batches:
    """Tables of a text log or a capture of stderr from anywhere, in batches of rows.

    Everything is looked for: what was captured with torch's messages, and other people's lines
    between them, which are no damage. What no message of any artifact tells of has no table.
    """
    sink = Sink(pass_name, keys or CompileKeys(pass_name))
    sink.raw_file = name
    readers = _readers(sink)
    raw = RawLines(sink, damage)
    sink.looked(("warnings",))
    for message in _messages(stream, name, raw, damage):
        _dispatch(message, readers)
        yield from sink.full()
    yield from sink.frames().items()


def _readers(sink: Sink) -> dict[str, Reader]:
    """A reader for every artifact that is understood, and for loggers' warnings under ``""``."""
    recompiles = Recompiles(sink)
    return {
        "graph_breaks": GraphBreaks(sink),
        "recompiles": recompiles,
        "recompiles_verbose": recompiles,
        "fusion": Fusions(sink),
        "perf_hints": PerfHints(sink),
        "inductor_metrics": InductorMetrics(sink),
        "schedule": Schedules(sink),
        "cudagraphs": Cudagraphs(sink),
        "output_code": OutputCode(sink),
        "": TorchWarnings(sink),
    }


def _read_logs(
    path: Path, sink: Sink, readers: dict[str, Reader], seen: _Seen, damage: Damage
) -> None:
    """A file in which only torch writes, in whole lines."""
    foreign = ForeignLines(sink.raw_file, damage)
    for message in _opened(path, sink.raw_file, foreign, damage):
        if message.level in LEVELS:
            seen.add(_identity(message))
        _dispatch(message, readers)


def _read_stderr(
    path: Path,
    sink: Sink,
    readers: dict[str, Reader],
    seen: _Seen,
    damage: Damage,
    *,
    logged: bool,
) -> None:
    """What anybody writes, and of torch's messages those that the log file lacks."""
    raw = RawLines(sink, damage)
    for message in _opened(path, sink.raw_file, raw, damage):
        if not logged or (message.level in LEVELS and _identity(message) not in seen):
            _dispatch(message, readers)


def _dispatch(message: Message, readers: dict[str, Reader]) -> None:
    reader = readers.get(message.artifact) if message.artifact else None
    if reader is not None:
        reader.message(message)
    if message.level in LEVELS:
        readers[""].message(message)


def _opened(path: Path, name: str, between: Between, damage: Damage) -> Iterator[Message]:
    """Messages of a file; one that can't be read is damage, not an error."""
    try:
        with opened(path) as stream:
            yield from _messages(stream, name, between, damage)
    except OSError as error:
        damage.count(name, damage_kind(error), None, str(error))


def _messages(stream: Stream, name: str, between: Between, damage: Damage) -> Iterator[Message]:
    lines = Lines(stream)
    yield from read_messages(lines, between)
    between.end(lines)
    if lines.error is not None:
        damage.count(name, damage_kind(lines.error), lines.number, str(lines.error))


def _identity(message: Message) -> tuple[int, str, str, int]:
    return (message.pid, message.stamp, message.source, message.source_line)


def _enabled(torch_logs: str) -> Iterator[str]:
    """Tables that the artifacts in TORCH_LOGS fill (``name``, ``+name``; ``-name`` is off)."""
    for name in re.split(r"[\s,]+", torch_logs):
        yield from TABLES_OF.get(name.removeprefix("+"), ())
