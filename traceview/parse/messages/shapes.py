"""What is passed on: messages, foreign lines, and how the log ended."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from struct import Struct

import msgspec

#: Warnings and what is worse.
LEVELS = frozenset("WEC")

#: What a line of torch's begins with.
PREFIX = (
    rb"(?P<prefix>(?:\[rank(?P<rank>\d{1,6})\]:)?(?P<level>[VIWEC])"
    rb"(?P<stamp>\d{4} \d\d:\d\d:\d\d\.\d{6}) (?P<pid>\d{1,12}) "
    rb"(?P<source>[^:\]\n]{1,300}(?<=\.py)):(?P<line>\d{1,7})\]"
    rb"(?: \[(?P<compile_id>![\d/_]{1,40}|\d[\d/_]{1,40})\])?(?: \[__(?P<artifact>\w{1,60})\])?)"
)
_PREFIX = re.compile(PREFIX)
_LEAP_YEAR = 2000
_PARTS = Struct("2s2sx2sx2sx2sx6s")  # of a stamp: MMDD hh:mm:ss.uuuuuu
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


class Wanted(msgspec.Struct, array_like=True, frozen=True):
    """What will be read: messages of these artifacts, and all messages of LEVELS.

    Of foreign lines those with one of the needles, and what follows them.
    """

    artifacts: frozenset[str]
    needles: tuple[bytes, ...]


class Message(msgspec.Struct, gc=False):
    """One record of a torch logger; ``body`` are its lines without their prefix."""

    level: str
    pid: int
    rank: int | None
    stamp: str
    source: str
    source_line: int
    compile_id: str | None
    artifact: str | None
    first_line: int
    body: bytes

    @property
    def text(self) -> str:
        """The body without colours."""
        return clean(self.body)

    @property
    def lines(self) -> list[str]:
        """The text's lines."""
        return self.text.split("\n")

    @property
    def clock_us(self) -> float | None:
        """µs since 1 January, local time: the log has no year and no zone."""
        month, day, hour, minute, second, us = map(int, _PARTS.unpack(self.stamp.encode()))
        try:
            at = datetime(_LEAP_YEAR, month, day, hour, minute, second, us)
        except ValueError:
            return None
        return (at - datetime(_LEAP_YEAR, 1, 1)).total_seconds() * 1e6


class Lines(msgspec.Struct, array_like=True, tag="l", gc=False):
    """The lines of a message as they came, each with the prefix, and the number of the first."""

    prefix: bytes
    first_line: int
    data: bytes

    def message(self) -> Message:
        """What they say."""
        head = _PREFIX.match(self.prefix)
        assert head is not None
        rank, level, stamp, pid, source, line, compile_id, artifact = head.groups()[1:]
        text = len(self.prefix) + 1  # behind a space
        return Message(
            level.decode(),
            int(pid),
            None if rank is None else int(rank),
            stamp.decode(),
            source.decode("utf-8", "replace"),
            int(line),
            None if compile_id is None else compile_id.decode(),
            None if artifact is None else artifact.decode(),
            self.first_line,
            b"\n".join([line[text:] for line in self.data.split(b"\n")]),
        )


class Foreign(msgspec.Struct, array_like=True, tag="f", gc=False):
    """Lines that no torch logger wrote, and the prefix of the message that began last."""

    first_line: int
    data: bytes
    after: bytes

    @property
    def numbered(self) -> Iterator[tuple[int, bytes]]:
        """Each line with its number."""
        return enumerate(self.data.split(b"\n"), self.first_line)

    @property
    def message(self) -> Message | None:
        """The message that began last, without its lines."""
        return Lines(self.after, 0, b"").message() if self.after else None


class End(msgspec.Struct, array_like=True, tag="e", gc=False):
    """The end: the line that would come next, or is incomplete, and what ended it early.

    ``bytes_read`` is how long the log was, unpacked and without prefixes.
    """

    line: int
    incomplete: bool
    damage: tuple[str, str] | None = None
    bytes_read: int = 0


Piece = Lines | Foreign | End


def clean(data: bytes) -> str:
    """Text without colour codes; bytes that are no UTF-8 become U+FFFD."""
    text = data.decode("utf-8", "replace")
    return _ANSI.sub("", text) if "\x1b" in text else text
