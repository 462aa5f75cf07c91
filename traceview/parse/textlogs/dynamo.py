"""graph_breaks and recompiles: what Dynamo says of the frames that it traces."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec.structs import asdict

from traceview.parse.messages import Message
from traceview.parse.textlogs.sink import SAID_BY_RANKS, Row, Sink, heads, split_at, user_columns
from traceview.torchtext.frames import first_user_frame
from traceview.torchtext.graph_breaks import parse_graph_break
from traceview.torchtext.guards import parse_guard

_BREAKS = ("Graph break in user code at ", "Graph break (user stack suppressed ")
_BREAK_HEADS = heads(*_BREAKS)
_RECOMPILE_HEADS = heads("Recompiling function ")
_RECOMPILE = re.compile(
    r"^Recompiling function (?P<name>.*) in (?P<file>.*):(?P<line>\d{1,9})$", re.MULTILINE
)
_ENTRY = re.compile(r"^\s*- (?P<failed>!?\d[\d/_]*): (?P<guard>.*)$")
_MORE = re.compile(r"^\s*- ?(?P<text>.*)$")


class GraphBreaks:
    """Rows of graph_breaks from TORCH_LOGS=graph_breaks; a duplicate has no user stack."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def message(self, message: Message) -> None:
        name = self._sink.name(message)
        for offset, text in split_at(message.text, _BREAK_HEADS):
            if text.startswith(_BREAKS):
                attempt = name.attempt if name else None
                row = _graph_break(text)
                self._sink.add("graph_breaks", message, offset, attempt=attempt, **row)


class Recompiles:
    """Rows of recompiles from TORCH_LOGS=recompiles or recompiles_verbose."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def message(self, message: Message) -> None:
        for offset, text in split_at(message.text, _RECOMPILE_HEADS):
            head = _RECOMPILE.match(text)
            if head is None:
                continue
            for order, (at, failed, guard) in enumerate(_entries(text)):
                self._sink.add(
                    "recompiles",
                    message,
                    offset + at,
                    co_name=head["name"],
                    co_filename=head["file"],
                    co_firstlineno=int(head["line"]),
                    order=order,
                    failed_compile_id=failed,
                    origin="text",
                    **_guard(guard),
                )


@SAID_BY_RANKS
def _graph_break(text: str) -> Row:
    read = parse_graph_break(text)
    nearest = first_user_frame(read.stack)
    return {
        "gb_id": read.gb_id,
        "gb_type": read.gb_type,
        "reason": read.reason,
        "explanation": read.explanation,
        "hints": list(read.hints),
        "context": read.context,
        "frame_skipped": read.frame_skipped,
        **user_columns(read.stack),
        "user_file": nearest.file if nearest else read.user_file,
        "user_line": nearest.line if nearest else read.user_line,
        "origin": "text",
    }


def _entries(text: str) -> Iterator[tuple[int, str, str]]:
    """(offset, failed compile id, guard with what belongs to it) of every cache entry listed."""
    at, failed = 0, ""
    guard: list[str] = []
    for offset, line in enumerate(text.split("\n")):
        entry = _ENTRY.match(line)
        if entry is not None:
            if failed:
                yield at, failed, "\n".join(guard)
            at, failed, guard = offset, entry["failed"], [entry["guard"]]
        elif failed and (more := _MORE.match(line)):
            guard.append(more["text"])
    if failed:
        yield at, failed, "\n".join(guard)


@SAID_BY_RANKS
def _guard(text: str) -> Row:
    row = asdict(parse_guard(text))
    del row["failed_compile_id"]  # the entry's head has it
    return row
