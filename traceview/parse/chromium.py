"""Chromium events of the compiler (tlparse's ``chromium_events.json``) as the log they came from.

torch writes each of them as a ``chromium_event`` record of the structured log; a file of them is
the payloads without the records. Here every event becomes a record again, with the compile id that
its arguments name, so that the parser of the structured log reads both. What the file lacks (graph
breaks, guards, graphs) no table is made of.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from hashlib import md5
from typing import Any

import msgspec
import polars as pl

from traceview import limits
from traceview.compile_id import CompileId
from traceview.inputs.streams import Stream
from traceview.json_errors import NOT_JSON
from traceview.parse import structured
from traceview.parse.damage import Damage
from traceview.parse.kineto.splitter import Splitter, UnknownLayout, objects, pieces

_TOLD = frozenset(("compile_phases", "compiles", "autotune_choices", "unreadable"))
_NEEDED: dict[str, type | tuple[type, ...]] = {"name": str, "ph": str, "ts": (int, float)}
_ANY = msgspec.json.Decoder(dict[str, Any])


def read_stream(
    stream: Stream, name: str, damage: Damage, *, pass_name: str = "logs"
) -> Iterator[tuple[str, pl.DataFrame]]:
    """Tables compile_phases, compiles and autotune_choices of an unpacked stream of events."""
    records = _Records(stream, name, damage)
    for table, frame in structured.read_stream(records, name, damage, pass_name=pass_name):
        if table in _TOLD and not frame.is_empty():
            yield table, frame


class _Records:
    """A stream of records, made of events."""

    def __init__(self, stream: Stream, name: str, damage: Damage) -> None:
        self._stream, self._name, self._damage = stream, name, damage
        self._lines = map(_record, self._events())
        self._left = b""

    def read(self, size: int, /) -> bytes:
        """At most ``size`` bytes; none at the end."""
        while len(self._left) < size and (line := next(self._lines, b"")):
            self._left += line
        given, self._left = self._left[:size], self._left[size:]
        return given

    def _events(self) -> Iterator[dict[str, Any]]:
        """Those with a name, a phase and a time; what cannot be read is counted."""
        name, damage = self._name, self._damage
        try:
            for part in Splitter(pieces(self._stream, name, damage)):
                for data in objects(part.data):
                    event: dict[str, Any] = {}
                    with suppress(*NOT_JSON):
                        limits.check_depth(data)
                        event = _ANY.decode(data)
                    if all(isinstance(event.get(name), kind) for name, kind in _NEEDED.items()):
                        yield event
                    elif part.whole:
                        damage.count(name, "bad_json", None, data[:200].decode(errors="replace"))
                if not part.whole:
                    damage.count(name, "truncated", None, part.data[:200].decode(errors="replace"))
        except UnknownLayout as error:
            damage.count(name, "unknown_format", None, str(error))


def _record(event: dict[str, Any]) -> bytes:
    """The record that torch wrote of ``event``; times are UTC, the process the event's own."""
    arguments = event.get("args")
    named = arguments.get("compile_id") if isinstance(arguments, dict) else None
    found = CompileId.parse(named) if isinstance(named, str) else None
    payload = msgspec.json.encode(event)
    digest = md5(payload).hexdigest()
    names = ("compiled_autograd_id", "frame_id", "frame_compile_id", "attempt")
    context = {name: getattr(found, name) for name in names} if found else {}
    envelope: dict[str, object] = {"chromium_event": {}, **context, "has_payload": digest}
    seconds, micro = divmod(int(event["ts"]), 1_000_000)
    stamp = time.strftime("%m%d %H:%M:%S", time.gmtime(max(0, min(seconds, 2**33))))
    pid = event.get("pid")
    process = pid if isinstance(pid, int) and 0 <= pid < 2**31 else 0
    head = f"V{stamp}.{micro:06} {process} torch/_dynamo/utils.py:1] ".encode()
    return head + msgspec.json.encode(envelope) + b"\n\t" + payload + b"\n"
