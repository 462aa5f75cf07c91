"""A text log as blocks of whole lines, and blocks to messages.

The format (``torch/_logging/_internal.py``, ``TorchLogsFormatter``), one prefix on *every* line:

    {[rankN]:}{L}{mmdd} {HH:MM:SS}.{us} {pid} {path}:{line}] [{compile id}] [__{artifact}] text

Lines of one prefix in a row are one message; two messages of the same millisecond and source line
run together, which whoever reads them undoes by their known first words. Several processes may
write to the same file: each has its own open message.

One search in a block finds a whole run of lines and steps over the lines of others: none is looked
at alone, and a message that is not wanted costs no more.
"""

from __future__ import annotations

import gc
import json
import re
import sys
from collections.abc import Iterator
from itertools import islice

import msgspec
from msgspec.structs import asdict

from traceview import limits
from traceview.inputs.source import Source
from traceview.inputs.streams import READ_ERRORS, Stream
from traceview.parse.beside import received, send
from traceview.parse.files import damage_kind
from traceview.parse.messages.shapes import LEVELS, PREFIX, End, Foreign, Lines, Piece, Wanted

#: What the open messages may hold; no message of torch's is as large.
OPEN_BYTES = 1 << 25
_OPEN_LIMIT = 256
_LEVELS = frozenset(level.encode() for level in LEVELS)
#: What begins in a foreign line ends within this many more, lines of other programs among them.
FOLLOWING = 1_000

_BLOCK_BYTES = 1 << 18
_LINE_END = re.compile(rb"[\r\n]")
_RUN = re.compile(rb"\n(?P<lines>" + PREFIX + rb".*(?:\n(?P=prefix).*)*)")
_LINE = re.compile(rb"(?P<lines>" + PREFIX + rb".*)")
#: A stamp anywhere in a line. Its only literal character stands first: searching that is fast.
_STAMP = re.compile(
    rb"\.(?<=[VIWEC]\d{4} \d\d:\d\d:\d\d\.)\d{6} \d{1,12} [^:\]\n]{1,300}(?<=\.py):\d{1,7}\]"
)
_STAMP_BEFORE = len("V1120 20:09:53")
_RANK, _RANK_BYTES = re.compile(rb"\[rank\d{1,6}\]:$"), 13
_CARRIAGE = re.compile(rb"\r[^\n]*")  # what a progress bar wrote behind a line, or CRLF


class Block:
    """Lines, each behind a line feed: a search for what begins a line finds the first one too."""

    def __init__(self, data: bytes, first_line: int) -> None:
        self.data = data
        self._line = first_line - 1
        self._counted = 0

    def line(self, offset: int) -> int:
        """Number of the line that ``offset`` is in, or whose line feed it is.

        No offset may lie before the last one that was asked for.
        """
        self._line += self.data.count(b"\n", self._counted, offset + 1)
        self._counted = offset + 1
        return self._line


class Blocks:
    """The blocks of a stream; of a line over ``limits.line`` the rest is left out.

    At the end, ``line`` is the number of the line that would come next, or that has no line feed
    and is ``incomplete``; ``damage`` is the kind and text of what ended the reading early, and
    ``bytes_read`` counts what came before.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.line = 1
        self.incomplete = False
        self.damage: tuple[str, str] | None = None
        self.bytes_read = 0

    def __iter__(self) -> Iterator[Block]:
        rest = b"\n"  # nothing at all: inside a line of which a part has been given already
        while data := self._read():
            data = rest + data if rest else self._resumed(data)
            end = data.rfind(b"\n")
            if end > 0 or len(data) > limits.now.line:
                rest = data[end:] if end else b""
                block = Block(data[:end] if end else data, self.line)
                yield block
                self.line = block.line(len(block.data)) + 1
            else:
                rest = data
        self.incomplete = rest != b"\n"
        self.line -= not rest
        if len(rest) > 1:
            yield Block(rest, self.line)

    def _read(self) -> bytes:
        try:
            data = self._stream.read1(_BLOCK_BYTES)
        except READ_ERRORS as error:
            self.damage = damage_kind(error), str(error)
            return b""
        self.bytes_read += len(data)
        return data

    def _resumed(self, data: bytes) -> bytes:
        """What follows the long line: its rest may be progress bars, which end with ``\\r``."""
        end = _LINE_END.search(data)
        if end is None:
            return b""
        self.line -= end[0] == b"\r"
        return b"\n" + data[end.end() :]


def pieces(stream: Stream, wanted: Wanted) -> Iterator[Piece]:
    """What is wanted of a log, in order; a message comes when the next one of its process begins.

    A damaged prefix makes a line foreign.
    """
    blocks = Blocks(stream)
    messages, others = _Messages(wanted), _Others(wanted)
    for block in blocks:
        at = 0
        for run in _RUN.finditer(block.data):
            if run.start() > at:
                yield from _between(block, at, run.start(), messages, others)
            if (complete := messages.take(run, block)) is not None:
                yield complete.lines()
            at = run.end()
        yield from _between(block, at, len(block.data), messages, others)
    yield from messages.left()
    yield End(blocks.line, blocks.incomplete, blocks.damage, blocks.bytes_read)


def _between(
    block: Block, at: int, end: int, messages: _Messages, others: _Others
) -> Iterator[Piece]:
    """Foreign lines, and torch's behind progress bars or whatever had no line feed."""
    data = block.data
    while stamp := _STAMP.search(data, at, end):
        start = stamp.start() - _STAMP_BEFORE
        rank = _RANK.search(data, max(at, start - _RANK_BYTES), start)
        line = _LINE.match(data, rank.start() if rank else start)
        assert line is not None
        foreign = others.look(block, at, data.rfind(b"\n", at, start), messages.newest)
        if foreign is not None:
            yield foreign
        if (complete := messages.take(line, block)) is not None:
            yield complete.lines()
        at = line.end()
    if (foreign := others.look(block, at, end, messages.newest)) is not None:
        yield foreign


class _Open(msgspec.Struct, eq=False):
    """A message that may go on."""

    prefix: bytes
    first_line: int
    runs: list[bytes]

    def lines(self) -> Lines:
        return Lines(self.prefix, self.first_line, b"\n".join(self.runs))


class _Messages:
    """The last message of each process, which may go on; None for one that is not wanted."""

    def __init__(self, wanted: Wanted) -> None:
        self.newest = b""
        self._artifacts = frozenset(name.encode() for name in wanted.artifacts)
        self._opened: dict[bytes, _Open | None] = {}
        self._prefix = b""
        self._last: _Open | None = None
        self._held = 0

    def take(self, run: re.Match[bytes], block: Block) -> _Open | None:
        """Add lines to their message; gives another one that is complete now."""
        complete = None
        prefix, lines = run.group("prefix", "lines")
        if prefix != self._prefix:
            self._prefix, pid = prefix, run["pid"]
            self._last = self._opened.get(pid)
            if self._last is None or self._last.prefix != prefix:
                complete = self._last or self._one_too_many(pid)
                self._last = self._opened[pid] = self._begun(run, block)
                if complete is not None:
                    self._held -= sum(map(len, complete.runs))
        if self._last is not None and (room := OPEN_BYTES - self._held) > 0:
            lines = (_CARRIAGE.sub(b"", lines) if b"\r" in lines else lines)[:room]
            self._last.runs.append(lines)
            self._held += len(lines)
        return complete

    def left(self) -> Iterator[Lines]:
        """What is complete because there are no more lines."""
        return (opened.lines() for opened in self._opened.values() if opened is not None)

    def _begun(self, run: re.Match[bytes], block: Block) -> _Open | None:
        self.newest = self._prefix
        level, artifact = run.group("level", "artifact")
        if artifact not in self._artifacts and level not in _LEVELS:
            return None
        return _Open(self._prefix, block.line(run.start("lines")), [])

    def _one_too_many(self, pid: bytes) -> _Open | None:
        if pid in self._opened or len(self._opened) < _OPEN_LIMIT:
            return None
        return self._opened.pop(next(iter(self._opened)))


class _Others:
    """Which of the lines between messages are worth a look."""

    def __init__(self, wanted: Wanted) -> None:
        self._needles = wanted.needles
        self._following = 0

    def look(self, block: Block, start: int, end: int, after: bytes) -> Foreign | None:
        """The lines behind the line feeds of this part of ``block``, if they may be wanted."""
        data, hit = block.data, False
        for needle in self._needles:
            if data.find(needle, start, end) >= 0:
                hit = True
                break
        if not hit and not self._following:
            return None
        first = data.find(b"\n", start, end)
        if first < 0:
            return None
        lines = data[first + 1 : end]
        self._following = FOLLOWING if hit else max(0, self._following - 1 - lines.count(b"\n"))
        return Foreign(block.line(first), lines, after)


# -- in a process of its own, for a large log ------------------------------------------------------

#: Pieces, or bytes of messages, that are sent at once.
_BATCH, _BATCH_BYTES = 256, 1 << 16
_DECODER = msgspec.msgpack.Decoder(list[Piece])


def pieces_ahead(source: Source, wanted: Wanted) -> Iterator[Piece]:
    """What ``pieces`` gives of the log; another process searches it while its pieces are read here.

    A process that dies costs nothing: pieces come in a fixed order, so the rest is found here.
    """
    got = 0
    task = [json.dumps(asdict(source)), msgspec.json.encode(wanted).decode()]
    for piece in received(__name__, task, _DECODER):
        got += 1
        yield piece
        if isinstance(piece, End):
            return
    with source.open() as stream:
        yield from islice(pieces(stream, wanted), got, None)


def main() -> None:
    """The other process: finds the pieces of the log that the command line names."""
    gc.disable()
    source = Source(**json.loads(sys.argv[1]))
    wanted = msgspec.json.decode(sys.argv[2], type=Wanted)
    batch: list[Piece] = []
    size = 0
    with source.open() as stream:
        for piece in pieces(stream, wanted):
            batch.append(piece)
            size += 0 if isinstance(piece, End) else len(piece.data)
            if len(batch) >= _BATCH or size > _BATCH_BYTES:
                _send(batch)
                size = 0
        _send(batch)


def _send(batch: list[Piece]) -> None:
    send(sys.stdout.buffer, msgspec.msgpack.encode(batch))
    batch.clear()
