"""Zip archives from the front, by their local headers (APPNOTE.TXT 4.3).

The directory at the end is not used: it is missing from a cut archive and from a stream, and it can
name the same bytes many times over.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from traceview.inputs.ahead import Ahead, Part
from traceview.inputs.packing import Packing, Unpacked
from traceview.inputs.streams import DamagedInput, Stream

_LOCAL = b"PK\x03\x04"
_DESCRIPTOR = b"PK\x07\x08"
_ENDS = (b"PK\x01\x02", b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x08")
_HEADER = struct.Struct("<4s5H3L2H")
_ENCRYPTED, _SIZE_BEHIND, _UTF8 = 0x1, 0x8, 0x800
_STORED = 0
_METHODS: dict[int, Packing] = {8: "deflate", 12: "bzip2", 93: "zstd", 95: "xz"}
_UNKNOWN = 0xFFFFFFFF
_ZIP64 = 1


def is_zip(head: bytes) -> bool:
    """Whether ``head`` begins an archive with files in it."""
    return head.startswith(_LOCAL)


def zip_members(stream: Ahead) -> Iterator[tuple[str, Stream]]:
    """(name, bytes) of each file; one that can't be unpacked raises when it is read."""
    while True:
        header = stream.exactly(_HEADER.size)
        if header[:4] in _ENDS:
            return
        if len(header) < _HEADER.size or header[:4] != _LOCAL:
            raise DamagedInput("truncated", "the archive ends before its directory")
        _, _, flags, method, _, _, _, packed, size, name_size, extra_size = _HEADER.unpack(header)
        name = stream.exactly(name_size).decode("utf-8" if flags & _UTF8 else "cp437", "replace")
        extra = stream.exactly(extra_size)
        if packed == _UNKNOWN or size == _UNKNOWN:
            packed = _long_size(extra, first=size == _UNKNOWN)
        is_open = bool(flags & _SIZE_BEHIND) and not packed
        member = _member(stream, method, None if is_open else packed, bool(flags & _ENCRYPTED))
        if not name.endswith("/"):
            yield name, member
        member.finish()
        if flags & _SIZE_BEHIND:
            _step_over_descriptor(stream)


class _Packed(Unpacked):
    """A packed member; what it does not use of the archive is given back."""

    def __init__(self, stream: Ahead, packing: Packing, size: int | None) -> None:
        self._archive = stream
        self._part = None if size is None else Part(stream, size)
        self._ended = False
        super().__init__(self._part or stream, packing)

    def next_file(self, rest: bytes) -> bytes:
        if self._part is None and not self._ended:
            self._archive.give_back(rest)
        self._ended = True
        return b""

    def finish(self) -> None:
        """Read to the end of this member in the archive."""
        if self._part is not None:
            self._part.finish()
        else:
            while self.more(self.BLOCK):
                pass

    def close(self) -> None:
        """The archive goes on."""


class _Refused(Part):
    """A member that can't be read; its bytes are stepped over."""

    why = ""

    def more(self, size: int) -> bytes:  # noqa: ARG002
        raise DamagedInput("unknown_packing", self.why)


def _member(stream: Ahead, method: int, size: int | None, encrypted: bool) -> Part | _Packed:
    packing = _METHODS.get(method)
    if not encrypted and method == _STORED and size is not None:
        return Part(stream, size)
    if not encrypted and packing is not None:
        return _Packed(stream, packing, size)
    if size is None:
        raise DamagedInput("unknown_packing", "the archive does not say how long a file is")
    refused = _Refused(stream, size)
    refused.why = "it is encrypted" if encrypted else f"zip method {method} is not known"
    return refused


def _long_size(extra: bytes, *, first: bool) -> int:
    """The packed size in the Zip64 field, which stands behind the unpacked one if both do."""
    while len(extra) >= 4:
        kind, size = struct.unpack_from("<2H", extra)
        field, extra = extra[4 : 4 + size], extra[4 + size :]
        if kind == _ZIP64:
            at = 8 if first else 0
            return int.from_bytes(field[at : at + 8], "little")
    return _UNKNOWN


def _step_over_descriptor(stream: Ahead) -> None:
    """Checksum and sizes behind a member: 4 or 8 bytes each, with or without a mark in front."""
    head = stream.peek(24 + 4)
    for size in (16, 24, 12, 20):
        if size in (16, 24) and not head.startswith(_DESCRIPTOR):
            continue
        if head[size : size + 2] == b"PK":
            stream.exactly(size)
            return
