"""graph_breaks and recompiles: what Dynamo says of the frames that it traces."""

from __future__ import annotations

import re

from msgspec.structs import asdict

from traceview.parse.messages.shapes import Message
from traceview.parse.textlogs.sink import SAID_BY_RANKS, Sink, heads, split_at
from traceview.torchtext.graph_breaks import break_columns
from traceview.torchtext.guards import parse_guard

_BREAKS = ("Graph break in user code at ", "Graph break (user stack suppressed ")
_BREAK_HEADS = heads(*_BREAKS)
_RECOMPILE_HEADS = heads("Recompiling function ")
_RECOMPILE = re.compile(
    r"^Recompiling function (?P<name>.*) in (?P<file>.*):(?P<line>\d{1,9})$", re.MULTILINE
)
_ENTRY = re.compile(r"^\s*- (?P<failed>!?\d[\d/_]*): (?P<guard>.*)$")
_MORE = re.compile(r"^\s*- ?(?P<text>.*)$")
_break_columns, _parse_guard = SAID_BY_RANKS(break_columns), SAID_BY_RANKS(parse_guard)


def graph_breaks(sink: Sink, message: Message) -> None:
    """Rows of graph_breaks from TORCH_LOGS=graph_breaks; a duplicate has no user stack."""
    name = sink.name(message)
    head = {"attempt": name.attempt if name else None, "origin": "text"}
    for offset, text in split_at(message.text, _BREAK_HEADS):
        if text.startswith(_BREAKS):
            sink.add("graph_breaks", message, offset, **head, **_break_columns(text))


def recompiles(sink: Sink, message: Message) -> None:
    """Rows of recompiles from TORCH_LOGS=recompiles or recompiles_verbose."""
    for offset, text in split_at(message.text, _RECOMPILE_HEADS):
        head = _RECOMPILE.match(text)
        if head is None:
            continue
        code = {
            "co_name": head["name"],
            "co_filename": head["file"],
            "co_firstlineno": int(head["line"]),
        }
        # Every cache entry listed: offset, failed compile id, guard with what belongs to it.
        entries: list[tuple[int, str, list[str]]] = []
        for at, line in enumerate(text.split("\n")):
            if entry := _ENTRY.match(line):
                entries.append((at, entry["failed"], [entry["guard"]]))
            elif entries and (more := _MORE.match(line)):
                entries[-1][2].append(more["text"])
        for order, (at, failed, lines) in enumerate(entries):
            guard = asdict(_parse_guard("\n".join(lines)))
            row = guard | {"order": order, "failed_compile_id": failed}
            sink.add("recompiles", message, offset + at, origin="text", **code, **row)
