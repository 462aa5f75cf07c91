"""The same in a process of its own, for a large log: it searches while its pieces are read here.

A process that dies costs nothing: its pieces come in a fixed order, so the rest is found here.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

import msgspec

from traceview.parse.messages.finding import pieces
from traceview.parse.messages.shapes import End, Piece, Wanted

#: So many pieces, or bytes of messages, are sent at once; the other process may be so far ahead.
_BATCH, _BATCH_BYTES, _AHEAD_BYTES = 256, 1 << 16, 1 << 20
_LENGTH_BYTES = 4
_COMMAND = """import sys
sys.path[:] = sys.argv[3:]
from traceview.parse.messages.ahead import main
main()"""
_DECODER = msgspec.msgpack.Decoder(list[Piece])


def pieces_ahead(path: Path, wanted: Wanted) -> Iterator[Piece]:
    """What ``pieces`` gives of the file, found by another process."""
    got = 0
    for piece in _received(path, wanted):
        got += 1
        yield piece
        if isinstance(piece, End):
            return
    with path.open("rb") as stream:
        yield from islice(pieces(stream, wanted), got, None)


def _received(path: Path, wanted: Wanted) -> Iterator[Piece]:
    """What the other process finds; ends without ``End`` where it died."""
    task = msgspec.json.encode(wanted).decode()
    command = [sys.executable, "-c", _COMMAND, os.fspath(path), task, *sys.path]
    quiet = subprocess.DEVNULL
    try:
        other = subprocess.Popen(
            command, stdin=quiet, stdout=subprocess.PIPE, stderr=quiet, pipesize=_AHEAD_BYTES
        )
    except OSError:
        return
    assert other.stdout is not None
    try:
        with suppress(msgspec.DecodeError):
            while head := other.stdout.read(_LENGTH_BYTES):
                yield from _DECODER.decode(other.stdout.read(int.from_bytes(head, "little")))
    finally:
        other.kill()
        other.stdout.close()
        other.wait()


def main() -> None:
    """The other process: finds the pieces of the log that the command line names."""
    gc.disable()
    wanted = msgspec.json.decode(sys.argv[2], type=Wanted)
    batch: list[Piece] = []
    size = 0
    with Path(sys.argv[1]).open("rb") as stream:
        for piece in pieces(stream, wanted):
            batch.append(piece)
            size += 0 if isinstance(piece, End) else len(piece.data)
            if len(batch) >= _BATCH or size > _BATCH_BYTES:
                _send(batch)
                size = 0
        _send(batch)


def _send(batch: list[Piece]) -> None:
    data = msgspec.msgpack.encode(batch)
    sys.stdout.buffer.write(len(data).to_bytes(_LENGTH_BYTES, "little") + data)
    sys.stdout.buffer.flush()
    batch.clear()
