"""The process that reads the rest of a large trace: its standard output is a stream of ``rest``."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import msgspec

from traceview.inputs.streams import Counted, Stream
from traceview.parse.beside import send
from traceview.parse.damage import Damage
from traceview.parse.files import opened
from traceview.parse.kineto.gathering import Gathered, decoded
from traceview.parse.kineto.rest import Damaged, End, Item
from traceview.parse.kineto.splitter import Splitter, UnknownLayout
from traceview.parse.kineto.stream import PIECE, pieces


def main() -> None:
    """Read the trace that the command line names, from the offset that it names."""
    gc.disable()
    name, offset = sys.argv[1], int(sys.argv[2])
    gathered, damage = Gathered(), Damage()
    with opened(Path(name)) as raw:
        stream = Counted(raw)
        separator = Splitter(pieces(stream, name, damage)).separator()
        if separator is None or not _at(raw, stream, offset):
            return
        parts = Splitter(pieces(stream, name, damage), behind=separator)
        try:
            for part in parts:
                gathered.add(decoded(part, name, damage))
        except UnknownLayout as error:
            damage.count(name, "unknown_format", None, str(error))
        for item in gathered.given():
            _send(item)
        for kind, times, example in damage.kinds():
            _send(Damaged(kind, times, example))
        _send(End(parts.tail, stream.given))


def _at(raw: Stream, stream: Counted, offset: int) -> bool:
    """Whether ``stream`` goes on at ``offset``; what is packed is unpacked up to there."""
    if raw.seekable():
        return raw.seek(offset) == offset
    while (left := offset - stream.given) > 0 and stream.read(min(left, PIECE)):
        pass
    return stream.given == offset


def _send(item: Item) -> None:
    send(sys.stdout.buffer, msgspec.msgpack.encode([item]))
