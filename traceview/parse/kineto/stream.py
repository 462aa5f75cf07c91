"""The bytes of a trace file in pieces of bounded size, packed or not, whole or cut.

Whether a file is packed is told by its first bytes, not its name. ``zlib.decompressobj(47)`` gives
what a cut .gz still holds, where ``gzip`` raises EOFError and keeps it back.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from traceview.parse.damage import Damage

#: 256 KiB: of 64 KiB to 1 MiB the fastest, as the piece and its events stay in the cache.
PIECE = 256 * 1024
_MAGIC = b"\x1f\x8b"
_ANY_WRAPPER = 47


def pieces(path: Path, name: str, damage: Damage) -> Iterator[bytes]:
    """Unpacked bytes of ``path`` in order; what cannot be read is counted under ``name``."""
    try:
        with path.open("rb") as file:
            packed = file.read(2) == _MAGIC
            file.seek(0)
            if packed:
                yield from _unpacked(file, name, damage)
            else:
                yield from iter(lambda: file.read(PIECE), b"")
    except OSError as error:
        damage.count(name, "unreadable", None, str(error))


def _unpacked(file: IO[bytes], name: str, damage: Damage) -> Iterator[bytes]:
    unpacker = zlib.decompressobj(_ANY_WRAPPER)
    packed = b""
    try:
        while True:
            packed = packed or file.read(PIECE)
            if unpacker.eof and packed.startswith(_MAGIC):
                unpacker = zlib.decompressobj(_ANY_WRAPPER)
            if not packed or unpacker.eof:
                break
            data = unpacker.decompress(packed, PIECE)
            packed = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
            if data:
                yield data
        if rest := unpacker.flush():
            yield rest
    except zlib.error as error:
        damage.count(name, "truncated", None, f"packed data is damaged: {error}")
        return
    if not unpacker.eof:
        damage.count(name, "truncated", None, "the packed file ends before its end mark")
