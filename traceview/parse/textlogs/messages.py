"""Messages of torch's loggers, put together again from the lines of a text log.

The format (``torch/_logging/_internal.py``, ``TorchLogsFormatter``), one prefix on *every* line:

    {[rankN]:}{L}{mmdd} {HH:MM:SS}.{us} {pid} {path}:{line}] [{compile id}] [__{artifact}] text

Lines of one prefix in a row are one ``Message``; two messages of the same millisecond and source
line run together, which whoever reads them undoes by their known first words. Several processes may
write to the same file: each has its own open message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from io import BufferedIOBase
from typing import NamedTuple

from traceview.parse.files import READ_ERRORS

PREFIX = re.compile(
    rb"(?:\[rank(?P<rank>\d{1,6})\]:)?(?P<level>[VIWEC])(?P<stamp>\d{4} \d\d:\d\d:\d\d\.\d{6}) "
    rb"(?P<pid>\d{1,12}) (?P<source>[^:\]]{1,300}):(?P<line>\d{1,7})\]"
    rb"(?: \[(?P<compile_id>![\d/_]{1,40}|\d[\d/_]{1,40})\])?(?: \[__(?P<artifact>\w{1,60})\])?"
)
LINE_LIMIT = 1 << 20
MESSAGE_LINES = 200_000
_OPEN_LIMIT = 256
_BLOCK = 1 << 18
_LINES_OF_FOREIGN_BLOCK = 64
_LEAP_YEAR = 2000
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


@dataclass(slots=True)
class Message:
    """One record of a torch logger; ``lines`` have their prefix and colours taken off."""

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
    lines: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def clock_us(self) -> float | None:
        """µs since 1 January, local time: the log tells no year and no zone."""
        try:
            at = datetime.strptime(f"{_LEAP_YEAR}{self.stamp}", "%Y%m%d %H:%M:%S.%f")
        except ValueError:
            return None
        return (at - datetime(_LEAP_YEAR, 1, 1)).total_seconds() * 1e6


class RawLine(NamedTuple):
    """A line that no torch logger wrote."""

    number: int
    data: bytes


class Lines:
    """A file's lines without their ends; of a line over 1 MiB the rest is left out.

    Carriage returns count as line ends too (progress bars), numbers count line feeds only. Of a
    block that holds none of ``needles`` only the first lines are given, enough to see how something
    begun before it ends. ``incomplete`` tells whether the last line, ``number``, had no line feed,
    ``error`` what ended the reading early.
    """

    def __init__(self, file: BufferedIOBase, needles: tuple[bytes, ...] = ()) -> None:
        self._file = file
        self._needles = needles
        self.number = 1
        self.incomplete = False
        self.error: Exception | None = None

    def __iter__(self) -> Iterator[RawLine]:
        rest = b""
        while block := self._read():
            data = rest + block if rest else block
            end = data.rfind(b"\n") + 1
            if not end and len(data) < LINE_LIMIT:
                rest = data
                continue
            rest = data[end:] if end else b""
            yield from self._split(data[:end] if end else data)
        if rest:
            yield from self._split(rest)

    def _read(self) -> bytes:
        try:
            return self._file.read1(_BLOCK)
        except READ_ERRORS as error:
            self.error = error
            return b""

    def _split(self, data: bytes) -> Iterator[RawLine]:
        """Lines of ``data``: whole ones, or a piece of one that is too long."""
        first, tail = self.number, self.incomplete
        self.number += data.count(b"\n")
        self.incomplete = not data.endswith(b"\n")
        concerns = not self._needles or any(needle in data for needle in self._needles)
        most = len(data) if concerns else _LINES_OF_FOREIGN_BLOCK
        lines = data.split(b"\n", most)
        if not self.incomplete or len(lines) > most:
            lines.pop()
        returns = b"\r" in data
        for number, line in enumerate(lines, first):
            if returns and b"\r" in line:
                parts = line.rstrip(b"\r").split(b"\r", most)
                yield from (RawLine(number, part) for part in parts[:most])
            elif not tail or number > first:
                yield RawLine(number, line)


def read_messages(
    lines: Iterable[RawLine], *, raw_ends: bool = False
) -> Iterator[Message | RawLine]:
    """Messages and the lines between them; a message comes when the next one of its process begins.

    The order of messages of one process is kept. With ``raw_ends`` a line that is no logger's ends
    all open messages, so that they come before it. A damaged prefix makes a line a ``RawLine``.
    """
    opened: dict[int, Message] = {}
    last: Message | None = None
    for raw in lines:
        data = raw.data
        if last is not None and data.startswith(last.prefix):
            _append(last, data)
            continue
        match = PREFIX.search(data) if b".py:" in data else None
        if match is None:
            if raw_ends and opened:
                yield from opened.values()
                opened, last = {}, None
            yield raw
            continue
        pid = int(match["pid"])
        last = opened.get(pid)
        if last is None or last.prefix != match[0]:
            if last is not None:
                yield last
            elif len(opened) >= _OPEN_LIMIT:
                yield opened.pop(next(iter(opened)))
            last = opened[pid] = _start(match, raw.number)
        _append(last, data[match.start() :])
    yield from opened.values()


def clean(data: bytes) -> str:
    """Text without colour codes; bytes that are no UTF-8 become U+FFFD."""
    text = data.decode("utf-8", "replace")
    return _ANSI.sub("", text) if "\x1b" in text else text


def _append(message: Message, data: bytes) -> None:
    if len(message.lines) < MESSAGE_LINES:
        start = len(message.prefix)
        message.lines.append(clean(data[start + (data[start : start + 1] == b" ") :]))


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
