"""Messages of torch's loggers, put together again from the lines of a text log.

The format (``torch/_logging/_internal.py``, ``TorchLogsFormatter``), one prefix on *every* line:

    {[rankN]:}{L}{mmdd} {HH:MM:SS}.{us} {pid} {path}:{line}] [{compile id}] [__{artifact}] text

Lines of one prefix in a row are one ``Message``; two messages of the same millisecond and source
line run together, which whoever reads them undoes by their known first words. Several processes may
write to the same file: each has its own open message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from itertools import accumulate, takewhile
from struct import Struct
from typing import NamedTuple, Protocol

from traceview.inputs.streams import READ_ERRORS, Stream

PREFIX = re.compile(
    rb"(?:\[rank(?P<rank>\d{1,6})\]:)?(?P<level>[VIWEC])(?P<stamp>\d{4} \d\d:\d\d:\d\d\.\d{6}) "
    rb"(?P<pid>\d{1,12}) (?P<source>[^:\]]{1,300}):(?P<line>\d{1,7})\]"
    rb"(?: \[(?P<compile_id>![\d/_]{1,40}|\d[\d/_]{1,40})\])?(?: \[__(?P<artifact>\w{1,60})\])?"
)
_STAMP = re.compile(rb"[VIWEC]\d{4} \d\d:\d\d:\d\d\.\d{6} \d{1,12} [^:\]]{1,300}:\d{1,7}\]")
_RANK, _RANK_BYTES = re.compile(rb"\[rank\d{1,6}\]:$"), 13
LINE_LIMIT = 1 << 20
MESSAGE_BYTES = 1 << 25
_MANY_LINES = 32
_OPEN_LIMIT = 256
_BLOCK = 1 << 18
_NO_LINE = b"\n"  # no line begins with it
_LEAP_YEAR = 2000
_PARTS = Struct("2s2sx2sx2sx2sx6s")  # of a stamp: MMDD hh:mm:ss.uuuuuu
_LINE_END = re.compile(rb"[\r\n]")
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


@dataclass
class Message:
    """One record of a torch logger; ``data`` are its lines as they came, from their prefix on."""

    level: str
    pid: int
    rank: int | None
    stamp: str
    source: str
    source_line: int
    compile_id: str | None
    artifact: str | None
    first_line: int
    prefix: bytes
    data: list[bytes] = field(default_factory=list)

    @cached_property
    def lines(self) -> list[str]:
        """The lines without their prefix and colours."""
        start = len(self.prefix)
        rests = [line[start + (line[start : start + 1] == b" ") :] for line in self.data]
        return clean(b"\n".join(rests)).split("\n")

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @cached_property
    def clock_us(self) -> float | None:
        """µs since 1 January, local time: the log tells no year and no zone."""
        month, day, hour, minute, second, us = map(int, _PARTS.unpack(self.stamp.encode()))
        try:
            at = datetime(_LEAP_YEAR, month, day, hour, minute, second, us)
        except ValueError:
            return None
        return (at - datetime(_LEAP_YEAR, 1, 1)).total_seconds() * 1e6

    def shorten(self) -> None:
        """Forget what makes the message larger than any that torch writes."""
        ends = accumulate(map(len, self.data))
        del self.data[1 + sum(1 for _ in takewhile(MESSAGE_BYTES.__gt__, ends)) :]


class RawLine(NamedTuple):
    """A line that no torch logger wrote."""

    number: int
    data: bytes


class Lines:
    """Whole lines of a stream in blocks; of a line over 1 MiB the rest is left out.

    ``number`` is that of the next line, ``incomplete`` tells whether the last one had no line feed,
    ``error`` what ended the reading early.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.number = 1
        self.incomplete = False
        self.error: Exception | None = None

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """Number of the first line, and lines with a line feed between them."""
        rest = b""
        while block := self._read():
            data = rest + block if rest else block
            end = data.rfind(b"\n") + 1
            if not end and len(data) < LINE_LIMIT:
                rest = data
                continue
            rest = data[end:] if end else b""
            yield self._lines(data[:end] if end else data)
        if rest:
            yield self._lines(rest)

    def _read(self) -> bytes:
        try:
            return self._stream.read1(_BLOCK)
        except READ_ERRORS as error:
            self.error = error
            return b""

    def _lines(self, data: bytes) -> tuple[int, bytes]:
        first, inside = self.number, self.incomplete
        self.number += data.count(b"\n")
        self.incomplete = not data.endswith(b"\n")
        if inside:  # progress bars end their lines with carriage returns
            end = _LINE_END.search(data)
            first += end is not None and end[0] == b"\n"
            data = data[end.end() :] if end else b""
        data = data.replace(b"\r\n", b"\n")
        return first, data[:-1] if data.endswith(b"\n") else data


class Between(Protocol):
    """Whoever reads what stands between the messages."""

    def begins(self, message: Message) -> None:
        """A message begins; its lines are still to come."""

    def block(self, data: bytes) -> bool:
        """Whether ``line`` is to be called for lines of this block."""

    def line(self, number: int, data: bytes) -> None:
        """A line of no message; it may hold carriage returns."""

    def end(self, lines: Lines) -> None:
        """There are no more lines."""


def read_messages(lines: Lines, between: Between) -> Iterator[Message]:
    """Messages, each when the next one of its process begins; the lines between go to ``between``.

    The order of messages of one process is kept. A damaged prefix makes a line foreign.
    """
    opened: dict[int, Message] = {}
    last, prefix = [b""], _NO_LINE
    for first, data in lines:
        watched = between.block(data)
        numbered = enumerate(data.split(b"\n"), first) if watched else _possible(data, first)
        for number, line in numbered:
            if line.startswith(prefix):
                last.append(line)
                continue
            match = _prefix(line) if b".py:" in line else None
            if match is None:
                if watched:
                    between.line(number, line)
                continue
            pid, prefix = int(match["pid"]), match[0]
            message = opened.get(pid)
            if message is None or message.prefix != prefix:
                if message is not None:
                    yield message
                elif len(opened) >= _OPEN_LIMIT:
                    yield opened.pop(next(iter(opened)))
                message = opened[pid] = _start(match, number)
                between.begins(message)
            last = message.data
            last.append(_own(line, match))
        for message in opened.values():
            if len(message.data) > _MANY_LINES:
                message.shorten()
    yield from opened.values()


def _possible(data: bytes, first: int) -> Iterator[tuple[int, bytes]]:
    """The numbered lines that may be torch's; a search in a str is twice as fast as in bytes."""
    lines = enumerate(data.decode("latin-1").split("\n"), first)
    return ((number, line.encode("latin-1")) for number, line in lines if ".py:" in line)


def _prefix(line: bytes) -> re.Match[bytes] | None:
    """Where torch's own begins in ``line``: mostly at once, or behind anything."""
    found = PREFIX.match(line)
    if found is None and (stamp := _STAMP.search(line)):
        rank = _RANK.search(line, max(stamp.start() - _RANK_BYTES, 0), stamp.start())
        found = PREFIX.match(line, rank.start() if rank else stamp.start())
    return found


def _own(line: bytes, match: re.Match[bytes]) -> bytes:
    """What is torch's of a line: a progress bar may stand before and behind it."""
    own = line[match.start() :]
    return own[: end.start()] if (end := _LINE_END.search(own)) else own


def clean(data: bytes) -> str:
    """Text without colour codes; bytes that are no UTF-8 become U+FFFD."""
    text = data.decode("utf-8", "replace")
    return _ANSI.sub("", text) if "\x1b" in text else text


def _start(match: re.Match[bytes], number: int) -> Message:
    rank, compile_id, artifact = match["rank"], match["compile_id"], match["artifact"]
    return Message(
        level=match["level"].decode(),
        pid=int(match["pid"]),
        rank=None if rank is None else int(rank),
        stamp=match["stamp"].decode(),
        source=match["source"].decode("utf-8", "replace"),
        source_line=int(match["line"]),
        compile_id=None if compile_id is None else compile_id.decode(),
        artifact=None if artifact is None else artifact.decode(),
        first_line=number,
        prefix=match[0],
    )
