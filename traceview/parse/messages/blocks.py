"""A text log as blocks of whole lines."""

from __future__ import annotations

import re
from collections.abc import Iterator

from traceview.inputs.streams import READ_ERRORS, Stream
from traceview.parse.files import damage_kind

LINE_LIMIT = 1 << 20
_BYTES = 1 << 18
_LINE_END = re.compile(rb"[\r\n]")


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
    """The blocks of a stream; of a line over 1 MiB the rest is left out.

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
            if end > 0 or len(data) > LINE_LIMIT:
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
            data = self._stream.read1(_BYTES)
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
