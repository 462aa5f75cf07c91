"""What cutting passes on: chunks of the stream, records, and the context of an envelope."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable

import msgspec

from traceview.json_errors import NOT_JSON
from traceview.parse.payloads.readers import Told

PREFIX = re.compile(
    rb"[VIWEC](?P<stamp>\d{4} \d\d:\d\d:\d\d\.\d{6}) +(?P<pid>\d{1,18}) +"
    rb"(?:[A-Za-z]:)?[^:\n]{1,1024}:\d+\] ?(?=\{)"
)
#: Called with kind, line and an example of each piece of damage.
Report = Callable[[str, int, str], None]
#: When a record was written, local time, as it says: ``1120 20:09:53.524000``. Later is greater.
Stamp = bytes


class Context(msgspec.Struct, gc=False, omit_defaults=True):
    """The context keys of an envelope; has_payload is the MD5 of the payload in hex."""

    rank: int | None = None
    frame_id: int | None = None
    frame_compile_id: int | None = None
    attempt: int | None = None
    compiled_autograd_id: int | None = None
    has_payload: str | None = None


CONTEXT = msgspec.json.Decoder(Context)
KEYS = msgspec.json.Decoder(dict[str, msgspec.Raw])
#: Keys of an envelope that are not its kind.
CONTEXT_KEYS = frozenset((*Context.__struct_fields__, "stack", "subgraph_name"))


class Chunk(msgspec.Struct, gc=False):
    """A line with the tab lines after it: a part of ``block``, at ``offset`` in the file.

    ``ended`` says whether a newline ended it, ``lines`` how many they are, once that is known.
    """

    line: int
    offset: int
    block: bytes
    start: int
    end: int
    ended: bool
    lines: int = 0


class Record(msgspec.Struct, gc=False):
    """One record: its line, the process that wrote it, its kind, its context.

    ``size`` are the bytes of its payload, ``stamp`` says when it was written, ``told`` is what
    its payload alone shows, if that was read ahead. ``whole`` says that it has the right digest;
    ``name`` is an artifact's name.
    """

    line: int
    pid: int
    key: str
    context: Context
    size: int
    stamp: Stamp
    told: Told | None = None
    whole: bool = True
    name: str | None = None

    @property
    def head(self) -> tuple[bytes, bytes]:
        """Its first line: what stands before the envelope, and the envelope."""
        raise NotImplementedError

    @property
    def raw(self) -> bytes:
        """Its payload, with or without the tabs that the lines begin with: JSON is the same."""
        raise NotImplementedError

    @property
    def payload(self) -> bytes:
        """The payload's bytes as torch wrote them."""
        raw = self.raw
        if len(raw) == self.size:
            return raw
        quick = raw.replace(b"\t", b"")
        return quick if len(quick) == self.size else untab(raw)

    @property
    def body(self) -> msgspec.Raw:
        """The undecoded value of the envelope's kind; nothing where a key is no text."""
        try:
            return KEYS.decode(self.head[1])[self.key]
        except (*NOT_JSON, KeyError):
            return msgspec.Raw(b"")


class Cut(Record, kw_only=True, gc=False):
    """A record with its bytes; ``length`` bytes of the file from ``offset`` are just this one.

    A length of 0 says that it was put together from several places.
    """

    head: tuple[bytes, bytes]
    raw: bytes
    offset: int = 0
    length: int = 0


def untab(lines: bytes) -> bytes:
    """Payload lines without the tab that each begins with."""
    return lines[1:].replace(b"\n\t", b"\n")


# What the process that cuts ahead sends, in lists of items.


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
