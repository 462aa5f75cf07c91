"""The same in a process of its own, for a large log: it searches while its pieces are read here.

A process that dies costs nothing: its pieces come in a fixed order, so the rest is found here.
"""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Iterator
from itertools import islice

import msgspec
from msgspec.structs import asdict

from traceview.inputs.source import Source
from traceview.parse.beside import received, send
from traceview.parse.messages.finding import pieces
from traceview.parse.messages.shapes import End, Piece, Wanted

#: Pieces, or bytes of messages, that are sent at once.
_BATCH, _BATCH_BYTES = 256, 1 << 16
_DECODER = msgspec.msgpack.Decoder(list[Piece])


def pieces_ahead(source: Source, wanted: Wanted) -> Iterator[Piece]:
    """What ``pieces`` gives of the log, opened and searched by another process."""
    got = 0
    task = [json.dumps(asdict(source)), msgspec.json.encode(wanted).decode()]
    for piece in received(__name__, task, _DECODER):
        got += 1
        yield piece
        if isinstance(piece, End):
            return
    with source.open() as stream:
        yield from islice(pieces(stream, wanted), got, None)


def main() -> None:
    """The other process: finds the pieces of the log that the command line names."""
    gc.disable()
    source = Source(**json.loads(sys.argv[1]))
    wanted = msgspec.json.decode(sys.argv[2], type=Wanted)
    batch: list[Piece] = []
    size = 0
    with source.open() as stream:
        for piece in pieces(stream, wanted):
            batch.append(piece)
            size += 0 if isinstance(piece, End) else len(piece.data)
            if len(batch) >= _BATCH or size > _BATCH_BYTES:
                _send(batch)
                size = 0
        _send(batch)


def _send(batch: list[Piece]) -> None:
    send(sys.stdout.buffer, msgspec.msgpack.encode(batch))
    batch.clear()
