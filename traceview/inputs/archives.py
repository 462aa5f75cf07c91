"""Members of .tar.* and .zip archives, in the order in which they lie, each read as it passes.

Nothing is written to a path that an archive names: names are only shown. Archives are read from the
front, so standard input and remote ones work too, and a cut archive gives all that lies before.

Tar: POSIX.1-1988 ustar, POSIX.1-2001 pax, GNU long names. Only regular files are given; links,
devices and sparse files are stepped over. Zip: by the local headers (APPNOTE.TXT 4.3); the
directory at the end is not used, as it is missing from a cut archive and from a stream, and can
name the same bytes many times over.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from typing import Literal

from traceview import limits
from traceview.inputs.packing import Packing, Unpacked, packing_of, unpacked
from traceview.inputs.streams import Ahead, DamagedInput, Layer, Part, Stream

_TAR_BLOCK = 512
_LONGEST_NAME = 1 << 16
_TAR_REGULAR = (b"0", b"\0", b"7")
_LONG_NAME, _PAX = b"L", b"x"


def tar_members(stream: Ahead) -> Iterator[tuple[str, Stream]]:
    """(name, bytes) of each regular file."""
    long_name, pax_size = "", None
    while len(header := stream.exactly(_TAR_BLOCK)) == _TAR_BLOCK and header.strip(b"\0"):
        if not _checks(header):
            raise DamagedInput("bad_archive", "a header of the archive is damaged")
        size, kind = _octal(header[124:136]), header[156:157]
        if pax_size is not None and kind in _TAR_REGULAR:
            size = pax_size
        part = Part(stream, size)
        padding = -size % _TAR_BLOCK
        if kind in (_LONG_NAME, _PAX):
            text = part.read(min(size, _LONGEST_NAME)) if size else b""
            while len(text) < min(size, _LONGEST_NAME) and (piece := part.read(_TAR_BLOCK)):
                text += piece
            if kind == _PAX:
                long_name, pax_size = _pax_records(text)
            else:
                long_name = _tar_text(text)
        elif kind in _TAR_REGULAR:
            name, prefix = _tar_text(header[:100]), _tar_text(header[345:500])
            is_posix = header[257:263] == b"ustar\0"
            yield long_name or (f"{prefix}/{name}" if prefix and is_posix else name), part
        if kind not in (_LONG_NAME, _PAX):
            long_name, pax_size = "", None
        part.finish()
        stream.exactly(padding)


def _checks(header: bytes) -> bool:
    """The checksum counts its own eight bytes as spaces."""
    try:
        checksum = _octal(header[148:156])
    except DamagedInput:
        return False
    return checksum == sum(header[:148]) + 8 * 0x20 + sum(header[156:])


def _octal(field: bytes) -> int:
    """Octal digits, or GNU's binary form for what they can't hold."""
    if field[:1] == b"\x80":
        return int.from_bytes(field[1:], "big")
    try:
        return int(field.strip(b" \0") or b"0", 8)
    except ValueError:
        raise DamagedInput("bad_archive", "a header of the archive is damaged") from None


def _pax_records(records: bytes) -> tuple[str, int | None]:
    """``path`` and ``size`` of records such as ``27 path=…``."""
    name, size = "", None
    while records:
        digits, _, _ = records.partition(b" ")
        if not digits.isdigit() or len(digits) > 9 or not int(digits):
            break
        key, _, value = records[len(digits) + 1 : int(digits) - 1].partition(b"=")
        records = records[int(digits) :]
        if key == b"path":
            name = _tar_text(value)
        elif key == b"size" and value.isdigit() and len(value) < 20:
            size = int(value)
    return name, size


def _tar_text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode("utf-8", "replace")


_ZIP_LOCAL = b"PK\x03\x04"
_DESCRIPTOR = b"PK\x07\x08"
_ZIP_ENDS = (b"PK\x01\x02", b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x08")
_HEADER = struct.Struct("<4s5H3L2H")
_ENCRYPTED, _SIZE_BEHIND, _UTF8 = 0x1, 0x8, 0x800
_STORED = 0
_METHODS: dict[int, Packing] = {8: "deflate", 12: "bzip2", 93: "zstd", 95: "xz"}
_UNKNOWN = 0xFFFFFFFF
_ZIP64 = 1


def zip_members(stream: Ahead) -> Iterator[tuple[str, Stream]]:
    """(name, bytes) of each file; one that can't be unpacked raises when it is read."""
    while True:
        header = stream.exactly(_HEADER.size)
        if header[:4] in _ZIP_ENDS:
            return
        if len(header) < _HEADER.size or header[:4] != _ZIP_LOCAL:
            raise DamagedInput("truncated", "the archive ends before its directory")
        _, _, flags, method, _, _, _, packed, size, name_size, extra_size = _HEADER.unpack(header)
        name = stream.exactly(name_size).decode("utf-8" if flags & _UTF8 else "cp437", "replace")
        extra = stream.exactly(extra_size)
        if packed == _UNKNOWN or size == _UNKNOWN:
            packed = _zip64_size(extra, first=size == _UNKNOWN)
        is_open = bool(flags & _SIZE_BEHIND) and not packed
        member = _zip_member(stream, method, None if is_open else packed, bool(flags & _ENCRYPTED))
        if not name.endswith("/"):
            yield name, member
        member.finish()
        # Checksum and sizes behind it: 4 or 8 bytes each, with or without a mark in front.
        head = stream.peek(24 + 4) if flags & _SIZE_BEHIND else b""
        marked = head.startswith(_DESCRIPTOR)
        for length in (16, 24, 12, 20) if marked else (12, 20):
            if head[length : length + 2] == b"PK":
                stream.exactly(length)
                break


class _PackedMember(Unpacked):
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


class _RefusedMember(Part):
    """A member that can't be read; its bytes are stepped over."""

    why = ""

    def more(self, size: int) -> bytes:  # noqa: ARG002
        raise DamagedInput("unknown_packing", self.why)


def _zip_member(
    stream: Ahead, method: int, size: int | None, encrypted: bool
) -> Part | _PackedMember:
    if method == _STORED and size is not None and not encrypted:
        return Part(stream, size)
    if method in _METHODS and not encrypted:
        return _PackedMember(stream, _METHODS[method], size)
    if size is None:
        raise DamagedInput("unknown_packing", "the archive does not say how long a file is")
    refused = _RefusedMember(stream, size)
    refused.why = "it is encrypted" if encrypted else f"zip method {method} is not known"
    return refused


def _zip64_size(extra: bytes, *, first: bool) -> int:
    """The packed size in the Zip64 field, which stands behind the unpacked one if both do."""
    while len(extra) >= 4:
        kind, size = struct.unpack_from("<2H", extra)
        field, extra = extra[4 : 4 + size], extra[4 + size :]
        if kind == _ZIP64:
            at = 8 if first else 0
            return int.from_bytes(field[at : at + 8], "little")
    return _UNKNOWN


Archive = Literal["", "tar", "zip"]
#: What stands between an archive's name and a member's.
INSIDE = "!/"


def archive_of(head: bytes) -> Archive:
    """What kind of archive begins with ``head`` (unpacked); "" for none."""
    if head[257:262] == b"ustar" and _checks(head[:_TAR_BLOCK]):
        return "tar"
    return "zip" if head.startswith(_ZIP_LOCAL) else ""


def members(stream: Stream, archive: Archive) -> Iterator[tuple[str, Stream]]:
    """(name, bytes) of each file; a stream ends when the next one is asked for.

    READ_ERRORS come after the last member that can be read; a name that repeats gets a number.
    """
    seen = Counter[str]()
    below = Ahead(stream)
    for name, member in tar_members(below) if archive == "tar" else zip_members(below):
        seen[name] += 1
        if seen.total() > limits.now.members:
            raise DamagedInput("too_many_members", f"more than {limits.now.members} files")
        yield (name if seen[name] == 1 else f"{name} ({seen[name]})"), member


def open_member(stream: Stream, member: str) -> Stream:
    """The bytes of the member that ``members`` gave that name; one inside another behind "!/"."""
    below = Ahead(stream)
    opened = Ahead(unpacked(below, packing_of(below.peek(8))))
    found = members(opened, archive_of(opened.peek(1024)))
    for name, inner in found:
        if name == member:
            return Member(inner, stream)
        if member.startswith(name + INSIDE):
            return open_member(inner, member[len(name) + len(INSIDE) :])
    raise FileNotFoundError(2, "the archive holds no such file any more", member)


class Member(Layer):
    """A member whose archive is closed with it."""

    def __init__(self, below: Stream, archive: Stream) -> None:
        super().__init__(below)
        self._archive = archive

    def more(self, size: int) -> bytes:
        return self.below.read(size)

    def close(self) -> None:
        self._archive.close()
        super().close()
