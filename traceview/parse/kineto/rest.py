"""The rest of a large trace, read by another process while the beginning is read here.

Both count bytes as they are unpacked, and meet behind the first event that ends at or after
``offset``. The rest comes when it is whole: if its process dies it is read here. The other process
runs ``main``; its standard output is a stream of items.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

import msgspec

from traceview.inputs.packing import packing_of
from traceview.inputs.streams import Counted
from traceview.parse import beside
from traceview.parse.damage import Damage
from traceview.parse.files import opened
from traceview.parse.kineto.columns import Rows, Words
from traceview.parse.kineto.events import Gathered, decoded
from traceview.parse.kineto.splitter import PIECE, Splitter, UnknownLayout, pieces

#: A trace from this size on is worth it, unpacked.
AHEAD_BYTES = 64 << 20
#: Of these the part that is read here: the other process has to start first.
_SHARE = 0.56
_MAGIC_BYTES, _SIZE_BYTES = 8, 4


class Damaged(msgspec.Struct, array_like=True, tag="damaged", gc=False):
    """Damage of one kind."""

    kind: str
    times: int
    example: str


class End(msgspec.Struct, array_like=True, tag="end", gc=False):
    """All was read: what stands behind the events, and the bytes up to there, unpacked."""

    tail: bytes
    bytes_read: int


Item = Words | Rows | Damaged | End
_DECODER = msgspec.msgpack.Decoder(list[Item])


class Rest(msgspec.Struct):
    """What another process reads of a trace, from ``offset`` on; ``bytes_read`` once it has."""

    task: list[str]
    offset: int
    bytes_read: int | None = None

    def take(self, keep: Callable[[Words | Rows], None], name: str, damage: Damage) -> End | None:
        """Hand over everything that was read, once it is whole; None if it never will be."""
        items = list(beside.received(__name__, self.task, _DECODER))
        end = items[-1] if items else None
        if not isinstance(end, End):
            return None
        for item in items:
            if isinstance(item, Damaged):
                damage.count(name, item.kind, None, item.example, times=item.times)
            elif not isinstance(item, End):
                keep(item)
        self.bytes_read = end.bytes_read
        return end


@contextmanager
def rest_begun(path: Path | None) -> Iterator[Rest | None]:
    """Another process begins with the rest of a large trace, plain or gzipped; None of others."""
    size = 0 if path is None else _unpacked(path)
    if path is None or size < AHEAD_BYTES:
        yield None
        return
    offset = int(size * _SHARE)
    task = [os.fspath(path), str(offset)]
    with beside.begun(__name__, task):
        yield Rest(task, offset)


def _unpacked(path: Path) -> int:
    """Bytes of ``path``, unpacked; 0 where that is not known.

    A gzip file ends with them, modulo 4 GiB. Where it says something else, the two parts are not
    equally long.
    """
    try:
        with path.open("rb") as file:
            packing = packing_of(file.read(_MAGIC_BYTES))
            size = file.seek(0, os.SEEK_END)
            if packing == "gzip":
                file.seek(size - _SIZE_BYTES)
                return int.from_bytes(file.read(), "little")
    except OSError:
        return 0
    return size if not packing else 0


def main() -> None:
    """Read the trace that the command line names, from the offset that it names."""
    gc.disable()
    name, offset = sys.argv[1], int(sys.argv[2])
    gathered, damage = Gathered(), Damage()
    with opened(Path(name)) as raw:
        stream = Counted(raw)
        separator = Splitter(pieces(stream, name, damage)).separator()
        if separator is None:
            return
        if raw.seekable():
            there = raw.seek(offset)
        else:  # unpack up to there
            while (left := offset - stream.given) > 0 and stream.read(min(left, PIECE)):
                pass
            there = stream.given
        if there != offset:
            return
        parts = Splitter(pieces(stream, name, damage), behind=separator)
        try:
            for part in parts:
                gathered.add(decoded(part, name, damage))
        except UnknownLayout as error:
            damage.count(name, "unknown_format", None, str(error))
        gathered.count_unread(name, damage)
        items = chain(
            gathered.given(),
            (Damaged(kind, times, example) for kind, times, example in damage.kinds()),
            [End(parts.tail, stream.given)],
        )
        for item in items:
            beside.send(sys.stdout.buffer, msgspec.msgpack.encode([item]))
