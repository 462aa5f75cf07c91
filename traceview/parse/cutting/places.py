"""What the process that cuts ahead sends, in lists of items."""

from __future__ import annotations

import errno
import os

import msgspec

from traceview.parse.cutting.shapes import Cut, Record


class Place(Record, array_like=True, tag="p", kw_only=True, gc=False):
    """A proven record whose bytes are in the file still: where, how long its parts are.

    It has ``lines`` lines. Who is sent it sets ``file``, a descriptor.
    """

    offset: int
    length: int
    prefix_bytes: int
    envelope_bytes: int
    lines: int
    file: int = -1

    @property
    def head(self) -> tuple[bytes, bytes]:
        """Read from the file."""
        line = self._read(0, self.prefix_bytes + self.envelope_bytes)
        return line[: self.prefix_bytes], line[self.prefix_bytes :]

    @property
    def raw(self) -> bytes:
        """Read from the file."""
        start = self.prefix_bytes + self.envelope_bytes + 1
        return self._read(start, self.length - start) if self.size else b""

    def _read(self, start: int, size: int) -> bytes:
        data = os.pread(self.file, size, self.offset + start)
        if len(data) < size:
            raise OSError(errno.ESTALE, "changed while it was read")
        return data


class Loose(msgspec.Struct, array_like=True, tag="l", gc=False):
    """A record that was put together or repaired."""

    record: Cut


class Damaged(msgspec.Struct, array_like=True, tag="d", gc=False):
    """A piece of damage."""

    kind: str
    line: int
    example: str


class End(msgspec.Struct, array_like=True, tag="e", gc=False):
    """All was cut."""


Item = Place | Loose | Damaged | End
DECODER = msgspec.msgpack.Decoder(list[Item])
