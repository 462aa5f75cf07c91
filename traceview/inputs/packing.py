"""Packed files: .gz, .bz2, .xz and .zst, unpacked as they are read, to no more than is plausible.

A cut file gives what it holds before it complains. Packed files behind one another count as one, as
the tools that made them have it.
"""

from __future__ import annotations

import bz2
import lzma
import sys
import zlib
from contextlib import suppress
from typing import Any, Literal, Protocol

from traceview import limits
from traceview.inputs.streams import DamagedInput, Layer, Stream

#: "deflate" is what zip archives hold, without a header of its own.
Packing = Literal["", "gzip", "bzip2", "xz", "zstd", "deflate"]

MAGIC: tuple[tuple[bytes, Packing], ...] = (
    (b"\x1f\x8b\x08", "gzip"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
)
_XZ_MEMORY = 1 << 28
_GZIP, _DEFLATE = 31, -15  # zlib's codes for "gzip header and trailer" and for none
_STEP = 256
_TO_INSTALL = "it is packed with zstd: pip install 'traceview[zstd]'"


class Unpacker(Protocol):
    """What bz2, lzma and zstd have in common."""

    @property
    def eof(self) -> bool: ...

    @property
    def needs_input(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        """At most ``max_length`` bytes of the packed ``data``."""
        ...


class _Zlib:
    """zlib as the other three behave."""

    def __init__(self, window: int) -> None:
        self._zlib = zlib.decompressobj(window)

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        packed, before = self._zlib.unconsumed_tail + data, self._zlib.copy()
        try:
            return self._zlib.decompress(packed, max_length)
        except zlib.error:
            self._zlib = before
            return self._to_the_damage(packed)

    def _to_the_damage(self, packed: bytes) -> bytes:
        """In small steps what one step lost; the error itself where there is no more."""
        given = b""
        while packed:
            before = self._zlib.copy()
            try:
                given += self._zlib.decompress(packed, _STEP)
            except zlib.error:
                if not given:
                    raise
                self._zlib = before
                return given
            packed = self._zlib.unconsumed_tail
        return given

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    @property
    def needs_input(self) -> bool:
        return not self._zlib.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._zlib.unused_data


def packing_of(head: bytes) -> Packing:
    """How a file that begins with ``head`` is packed."""
    return next((name for magic, name in MAGIC if head.startswith(magic)), "")


def unpacked(stream: Stream, packing: Packing) -> Stream:
    """``stream`` unpacked; DamagedInput where zstd is not installed."""
    if not packing:
        return stream
    if packing == "zstd":
        _zstd()
    return Unpacked(stream, packing)


def too_far(given: int, taken: int) -> DamagedInput | None:
    """The error where ``taken`` packed bytes unpack to more than is plausible."""
    if given <= limits.now.bomb or given <= taken * limits.now.ratio:
        return None
    what = f"more than {limits.now.ratio} times what it is packed"
    return DamagedInput("unpacks_too_far", what)


class Unpacked(Layer):
    """The bytes of a packed stream."""

    def __init__(self, below: Stream, packing: Packing) -> None:
        super().__init__(below)
        self._packing = packing
        self._unpacker = _unpacker(packing)
        self._taken = self._given = 0
        self._error: DamagedInput | None = None

    def more(self, size: int) -> bytes:
        while self._error is None:
            data = self._step(size)
            if data is None:
                return b""
            if data:
                self._given += len(data)
                self._error = too_far(self._given, self._taken)
                return data
        raise self._error

    def _step(self, size: int) -> bytes | None:
        """A piece, perhaps an empty one; None at the end; the error is kept for the next call."""
        unpacker, packed = self._unpacker, b""
        if unpacker.eof:
            packed = self.next_file(unpacker.unused_data)
            if not packed:
                return None
            unpacker = self._unpacker = _unpacker(self._packing)
        elif unpacker.needs_input:
            packed = self._packed()
            if not packed:
                self._error = DamagedInput("truncated", "the packed file ends before its end mark")
                return b""
        try:
            return unpacker.decompress(packed, size)
        except _errors() as error:
            self._error = DamagedInput("truncated", f"the packed data is damaged: {error}")
            return b""

    def next_file(self, rest: bytes) -> bytes:
        """The bytes from the next packed file on; none if only padding or foreign bytes follow."""
        rest = rest.lstrip(b"\0")
        while len(rest) < len(MAGIC[2][0]) and (piece := self._packed()):
            rest = (rest + piece).lstrip(b"\0")
        if rest and packing_of(rest) != self._packing:
            self._error = DamagedInput("truncated", "foreign bytes follow the packed data")
            return b""
        return rest

    def _packed(self) -> bytes:
        piece = self.below.read(self.BLOCK)
        self._taken += len(piece)
        return piece


def _unpacker(packing: Packing) -> Unpacker:
    if packing == "bzip2":
        return bz2.BZ2Decompressor()
    if packing == "xz":
        return lzma.LZMADecompressor(memlimit=_XZ_MEMORY)
    if packing == "zstd":
        unpacker: Unpacker = _zstd().ZstdDecompressor()
        return unpacker
    return _Zlib(_DEFLATE if packing == "deflate" else _GZIP)


def _zstd() -> Any:  # noqa: ANN401
    try:
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd
    except ImportError:
        raise DamagedInput("not_installed", _TO_INSTALL) from None
    return zstd


def _errors() -> tuple[type[Exception], ...]:
    """What the four libraries raise where data is damaged; zstd only if it is there."""
    kinds: list[type[Exception]] = [zlib.error, lzma.LZMAError, OSError, EOFError, MemoryError]
    with suppress(DamagedInput):
        kinds.append(_zstd().ZstdError)
    return tuple(kinds)
