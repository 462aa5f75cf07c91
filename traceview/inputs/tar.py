"""Tar archives from the front (POSIX.1-1988 ustar, POSIX.1-2001 pax, GNU long names).

Only regular files are given; links, devices and sparse files are stepped over.
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.inputs.ahead import Ahead, Part
from traceview.inputs.streams import DamagedInput, Stream

_BLOCK = 512
_LONGEST_NAME = 1 << 16
_REGULAR = (b"0", b"\0", b"7")
_LONG_NAME, _PAX = b"L", b"x"


def is_tar(head: bytes) -> bool:
    """Whether ``head`` is the first header of an archive."""
    return head[257:262] == b"ustar" and _checks(head[:_BLOCK])


def tar_members(stream: Ahead) -> Iterator[tuple[str, Stream]]:
    """(name, bytes) of each regular file."""
    long_name, pax_size = "", None
    while len(header := stream.exactly(_BLOCK)) == _BLOCK and header.strip(b"\0"):
        if not _checks(header):
            raise DamagedInput("bad_archive", "a header of the archive is damaged")
        size, kind = _number(header[124:136]), header[156:157]
        if pax_size is not None and kind in _REGULAR:
            size = pax_size
        part = Part(stream, size)
        padding = -size % _BLOCK
        if kind in (_LONG_NAME, _PAX):
            text = part.read(min(size, _LONGEST_NAME)) if size else b""
            while len(text) < min(size, _LONGEST_NAME) and (piece := part.read(_BLOCK)):
                text += piece
            if kind == _PAX:
                long_name, pax_size = _pax(text)
            else:
                long_name = _text(text)
        elif kind in _REGULAR:
            yield long_name or _name(header), part
        if kind not in (_LONG_NAME, _PAX):
            long_name, pax_size = "", None
        part.finish()
        stream.exactly(padding)


def _checks(header: bytes) -> bool:
    """The checksum counts its own eight bytes as spaces."""
    try:
        told = _number(header[148:156])
    except DamagedInput:
        return False
    return told == sum(header[:148]) + 8 * 0x20 + sum(header[156:])


def _number(field: bytes) -> int:
    """Octal digits, or GNU's binary form for what they can't hold."""
    if field[:1] == b"\x80":
        return int.from_bytes(field[1:], "big")
    try:
        return int(field.strip(b" \0") or b"0", 8)
    except ValueError:
        raise DamagedInput("bad_archive", "a header of the archive is damaged") from None


def _name(header: bytes) -> str:
    name, prefix = _text(header[:100]), _text(header[345:500])
    is_posix = header[257:263] == b"ustar\0"
    return f"{prefix}/{name}" if prefix and is_posix else name


def _pax(records: bytes) -> tuple[str, int | None]:
    """``path`` and ``size`` of records such as ``27 path=…``."""
    name, size = "", None
    while records:
        digits, _, _ = records.partition(b" ")
        if not digits.isdigit() or len(digits) > 9 or not int(digits):
            break
        key, _, value = records[len(digits) + 1 : int(digits) - 1].partition(b"=")
        records = records[int(digits) :]
        if key == b"path":
            name = _text(value)
        elif key == b"size" and value.isdigit() and len(value) < 20:
            size = int(value)
    return name, size


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode("utf-8", "replace")
