"""What cutting passes on: chunks of the stream, records, and the context of an envelope."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

PREFIX = re.compile(
    rb"[VIWEC](?P<month>\d\d)(?P<day>\d\d) (?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)"
    rb"\.(?P<micro>\d{6}) +(?P<pid>\d{1,18}) +(?:[A-Za-z]:)?[^:\n]{1,1024}:\d+\] ?(?=\{)"
)
#: Called with kind, line and an example of each piece of damage.
Report = Callable[[str, int, str], None]
Stamp = tuple[int, int, int, int, int, int]


class Context(msgspec.Struct, gc=False):
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

    ``ended`` says whether a newline ended it, ``lines`` how many they are, once somebody knows.
    """

    line: int
    offset: int
    block: bytes
    start: int
    end: int
    ended: bool
    lines: int = 0


class Record(msgspec.Struct, gc=False):
    """One record: what stands before its envelope, the envelope, its kind, context and payload.

    ``raw`` is the payload, with or without the tabs that its lines begin with, ``size`` its bytes
    without them. ``whole`` says that it has the right digest; ``name`` is an artifact's name.
    ``length`` bytes of the file from ``offset`` are just this record: 0 where it was put together.
    """

    line: int
    prefix: bytes
    envelope: bytes
    key: str
    context: Context
    raw: bytes
    size: int
    whole: bool = True
    offset: int = 0
    length: int = 0
    name: str | None = None

    @property
    def payload(self) -> bytes:
        """The payload's bytes as torch wrote them."""
        if len(self.raw) == self.size:
            return self.raw
        quick = self.raw.replace(b"\t", b"")
        return quick if len(quick) == self.size else untab(self.raw)

    @property
    def json(self) -> bytes:
        """The same for a reader of JSON, to whom a tab at a line's beginning is nothing."""
        return self.raw

    @property
    def body(self) -> msgspec.Raw:
        """The undecoded value of the envelope's kind; nothing where a key is no text."""
        try:
            return KEYS.decode(self.envelope)[self.key]
        except (msgspec.DecodeError, RecursionError, KeyError):
            return msgspec.Raw(b"")

    @property
    def pid(self) -> int:
        """The process that wrote it."""
        return int(self.prefix.split(None, 3)[2])

    @property
    def stamp(self) -> Stamp:
        """Month, day, hour, minute, second and microsecond, local time."""
        match = PREFIX.match(self.prefix + b"{")
        assert match is not None
        month, day, hour, minute, second, micro = match.groups()[:6]
        return int(month), int(day), int(hour), int(minute), int(second), int(micro)


def untab(lines: bytes) -> bytes:
    """Payload lines without the tab that each begins with."""
    return lines[1:].replace(b"\n\t", b"\n")
