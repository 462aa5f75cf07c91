"""Gunzip that gives what a cut file holds before it complains."""

from __future__ import annotations

import zlib
from typing import BinaryIO

_PACKED_BYTES = 1 << 20
_GZIP_WINDOW = 31  # zlib's code for "gzip header and trailer"


class Unpacker:
    """A gzip stream to read from; EOFError only after all that could be unpacked was given."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self._zlib = zlib.decompressobj(_GZIP_WINDOW)
        self._packed = b""

    def read(self, size: int, /) -> bytes:
        """Up to ``size`` bytes, b"" at the end; EOFError where the end is missing."""
        while True:
            packed = self._packed or self._raw.read(_PACKED_BYTES)
            if self._zlib.eof:
                packed = self._zlib.unused_data + packed
                if not packed.strip(b"\0"):
                    return b""
                self._zlib = zlib.decompressobj(_GZIP_WINDOW)
            elif not packed:
                raise EOFError("the packed file ends before its end mark")
            data = self._zlib.decompress(packed, size)
            self._packed = self._zlib.unconsumed_tail
            if data:
                return data
