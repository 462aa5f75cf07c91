"""Events out of the bytes of a trace, cut where an event ends, without reading the whole of it.

Both of torch's exporters end an event in a way that no string can hold, as raw newlines never occur
inside strings: ``\\n  },\\n  {`` (C++) and ``},\\n{`` (Python). In any other layout (re-saved,
compact) the cuts are found by following brackets and quotes.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator

import msgspec

from traceview import limits
from traceview.inputs.streams import READ_ERRORS, Stream
from traceview.parse.damage import Damage
from traceview.parse.files import damage_kind

#: 256 KiB: of 64 KiB to 1 MiB the fastest, as the piece and its events stay in the cache.
PIECE = 256 * 1024


def pieces(stream: Stream, name: str, damage: Damage) -> Iterator[bytes]:
    """The bytes of ``stream`` in order; what cannot be read is counted under ``name``."""
    try:
        while piece := stream.read(PIECE):
            yield piece
    except READ_ERRORS as error:
        damage.count(name, damage_kind(error), None, str(error))


_ROOT = re.compile(rb'"traceEvents"\s*:\s*\[')
_CPP = b"\n  },\n  {"
_PYTHON = b"},\n{"
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*("|\\?\Z)|[{}\[\]]', re.DOTALL)
_OPEN = (b"{", b"[")


class UnknownLayout(ValueError):
    """The bytes are no trace: no list of events, or an event without end."""


class Slice(msgspec.Struct):
    """Comma-separated whole events; ``whole`` is False for the rest of a file that was cut."""

    data: bytes
    whole: bool = True


class Splitter:
    """Slices of whole events from the bytes of a trace; iterating raises UnknownLayout.

    ``head`` is what stands before the list of events, ``tail`` the beginning of what follows it;
    both are known once the slices have been read.

    With ``until``, a slice ends with the first separator at or after that many bytes, if there is
    one, and ``reached`` is set. With ``behind``, the pieces begin anywhere in the list: what
    stands before the first such separator is left out.
    """

    def __init__(
        self, pieces: Iterable[bytes], until: int | None = None, behind: bytes | None = None
    ) -> None:
        self.head = b""
        self.tail = b""
        self.reached = False
        self._until = until
        self._behind = behind
        self._read = 0
        self._source = self._counted(pieces)

    def __iter__(self) -> Iterator[Slice]:
        separator = self._behind
        if separator is not None:
            buffer = self._after(separator)
        else:
            buffer, separator = self._begun()
        if separator is not None:
            buffer = yield from self._by_separator(buffer, separator)
        self.tail = yield from self._by_brackets(buffer)
        self.tail += next(self._source, b"")

    def separator(self) -> bytes | None:
        """What stands between two events, in the layouts of torch's exporters."""
        return self._begun()[1]

    def _counted(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            self._read += len(piece)
            yield piece

    def _begun(self) -> tuple[bytes, bytes | None]:
        buffer = self._after_root()
        while len(buffer) < PIECE and (piece := next(self._source, b"")):
            buffer += piece
        return buffer, next((mark for mark in (_CPP, _PYTHON) if mark in buffer), None)

    def _after_root(self) -> bytes:
        """What was read of the list of events: everything after its bracket."""
        buffer = b""
        for piece in self._source:
            buffer += piece
            head = buffer.removeprefix(b"\xef\xbb\xbf").lstrip()
            if head.startswith(b"["):
                return head[1:]
            if match := _ROOT.search(buffer):
                self.head = buffer[: match.start()]
                return buffer[match.end() :]
            if len(buffer) > limits.now.event or (head and not head.startswith(b"{")):
                break
        raise UnknownLayout("no list of events")

    def _after(self, separator: bytes) -> bytes:
        buffer = b""
        for piece in self._source:
            buffer += piece
            if (found := buffer.find(separator)) >= 0:
                return buffer[found + separator.index(b",") + 1 :]
            if len(buffer) > limits.now.event:
                break
        raise UnknownLayout("an event without end")

    def _by_separator(self, buffer: bytes, separator: bytes) -> Generator[Slice, None, bytes]:
        """Slices up to the last separator; returns what follows it: the last event and the tail."""
        keep = separator.index(b",")
        while True:
            cut = buffer.rfind(separator)
            if self._until is not None and cut >= 0:
                least = self._until - (self._read - len(buffer))
                if cut >= least:
                    cut = buffer.find(separator, max(0, least))
                    self._until, self.reached = None, True
            if cut >= 0:
                yield Slice(buffer[: cut + keep])
                buffer = buffer[cut + keep + 1 :]
            piece = next(self._source, b"")
            if not piece:
                return buffer
            if len(buffer) > limits.now.event:
                raise UnknownLayout("an event without end")
            buffer += piece

    def _by_brackets(self, buffer: bytes) -> Generator[Slice, None, bytes]:
        """Slices by following brackets and quotes to the end of the list; returns what follows."""
        while True:
            cut, ended = _walk(buffer)
            if cut:
                yield Slice(buffer[:cut].strip().strip(b",").strip())
                buffer = buffer[cut:]
            if ended:
                return buffer
            piece = next(self._source, b"")
            if not piece:
                break
            if len(buffer) > limits.now.event:
                raise UnknownLayout("an event without end")
            buffer += piece
        yield Slice(buffer.strip().strip(b",").strip(), whole=False)
        return b""


def objects(data: bytes) -> Iterator[bytes]:
    """Each of the comma-separated objects of a slice, by following brackets and quotes.

    A bracket that closes nothing is given alone: no object is longer for it.
    """
    start = depth = 0
    for token in _TOKEN.finditer(data):
        if token[1] is not None:
            continue
        if depth == 0:
            start = token.start()
        if token[0] in _OPEN:
            depth += 1
        else:
            depth = max(0, depth - 1)
            if depth == 0:
                yield data[start : token.end()]
    if depth:
        yield data[start:]


def _walk(buffer: bytes) -> tuple[int, bool]:
    """(end of the last whole event, whether the list itself ends after it)."""
    depth = cut = 0
    for token in _TOKEN.finditer(buffer):
        mark = token[0]
        if token[1] is not None:
            if not token[1].endswith(b'"'):
                break
        elif mark in _OPEN:
            depth += 1
        else:
            if depth == 0:
                return cut, True
            depth -= 1
            if depth == 0:
                cut = token.end()
    return cut, False
