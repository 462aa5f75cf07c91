"""Streams of lines that a launcher or a collector has written on, as they were before."""

from __future__ import annotations

import re
from typing import ClassVar

import msgspec

from traceview.inputs.kinds import STAMP
from traceview.inputs.streams import READ_ERRORS, Layer, Stream

_TORCH = re.compile(rb"[VIWEC]\d{4} \d\d:\d\d:\d\d\.\d{6} ")
_LONG_LINE = 1 << 20


class Rewritten(Layer):
    """Whole lines of a stream, rewritten; a line above 1 MiB is rewritten in pieces."""

    def __init__(self, below: Stream) -> None:
        super().__init__(below)
        self._rest = b""
        self._ready = b""
        self._inside = False
        self._ended: Exception | bool = False

    def rewrite(self, lines: bytes) -> bytes:
        """``lines``, each with its end but perhaps the last, as they are to be read."""
        raise NotImplementedError

    def more(self, size: int) -> bytes:
        while not self._ready:
            if isinstance(self._ended, Exception):
                raise self._ended
            if self._ended:
                return b""
            self._ready = self._next()
        data, self._ready = self._ready[:size], self._ready[size:]
        return data

    def _next(self) -> bytes:
        try:
            block = self.below.read(self.BLOCK)
            self._ended = not block
        except READ_ERRORS as error:
            block, self._ended = b"", error
        data = self._rest + block
        end = data.rfind(b"\n") + 1
        if self._ended or (not end and len(data) > _LONG_LINE):
            end = len(data)
        self._rest = data[end:]
        return self._lines(data[:end])

    def _lines(self, data: bytes) -> bytes:
        """What goes on with a line begun before is left as it is."""
        start = (data.find(b"\n") + 1 or len(data)) if self._inside else 0
        if data:
            self._inside = not data.endswith(b"\n")
        return data[:start] + (self.rewrite(data[start:]) if start < len(data) else b"")


class Stripped(Rewritten):
    """Lines without what a regular expression finds at their beginning."""

    def __init__(self, below: Stream, pattern: str) -> None:
        super().__init__(below)
        self._pattern = _compiled(pattern)

    def rewrite(self, lines: bytes) -> bytes:
        return _strip(lines, self._pattern)

    @staticmethod
    def lines(data: bytes, pattern: str) -> bytes:
        """``data`` without the prefixes."""
        return _strip(data, _compiled(pattern))


def _compiled(pattern: str) -> re.Pattern[bytes]:
    """With the line feed before it, since a search for what begins with a character is fast."""
    return re.compile(b"\n(?:" + pattern.encode("latin-1") + b")")


def _strip(lines: bytes, pattern: re.Pattern[bytes]) -> bytes:
    lines = b"\n" + lines
    if not pattern.groups:
        return b"\n".join(pattern.split(lines))[1:]  # faster than sub() by a seventh

    groups = pattern.groups
    first, *parts = pattern.split(lines)
    found = [parts[group :: groups + 1] for group in range(groups)]
    each = zip(*found, strict=True)
    ranks = found[0] if groups == 1 else [next(filter(None, told), None) for told in each]
    bare = zip(ranks, parts[groups :: groups + 1], strict=True)
    return (first + b"".join([_ranked(rank, line) for rank, line in bare]))[1:]


def _ranked(rank: bytes | None, line: bytes) -> bytes:
    """The rank where torch itself would have put it: in front of its own lines alone."""
    return b"\n[rank%b]:%b" % (rank, line) if rank and _TORCH.match(line) else b"\n" + line


class _Wrapped(msgspec.Struct):
    log: str | None = None
    message: str | None = None
    msg: str | None = None
    textPayload: str | None = None
    line: str | None = None


class Docker(Rewritten):
    """Lines wrapped in JSON: docker's json-file driver and collectors that do the same."""

    _HEAD: ClassVar = re.compile(
        rb'^\{"(?:[^\n]{0,2000}?")??(?:log|message|msg|textPayload|line)": ?"[^\n]{0,300}?' + STAMP,
        re.MULTILINE,
    )
    _DECODER: ClassVar = msgspec.json.Decoder(_Wrapped)

    @classmethod
    def wrote(cls, head: bytes) -> bool:
        """Whether ``head`` is of this kind."""
        return head.startswith(b"{") and cls._HEAD.search(head) is not None

    @classmethod
    def lines(cls, data: bytes) -> bytes:
        """``data`` unwrapped; lines that are no such JSON as they are."""
        return b"".join(cls._line(line) for line in data.splitlines(keepends=True))

    @classmethod
    def _line(cls, line: bytes) -> bytes:
        try:
            found = cls._DECODER.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return line
        if found.log is not None:  # its line end, if any, is part of the text
            return found.log.encode("utf-8", "replace")
        text = found.message or found.msg or found.textPayload or found.line or ""
        return text.removesuffix("\n").encode("utf-8", "replace") + b"\n"

    def rewrite(self, lines: bytes) -> bytes:
        return self.lines(lines)


class Cri(Rewritten):
    """Lines of the container runtimes under kubernetes: ``time stream F text``, P for a part."""

    _LINE: ClassVar = rb"^\d{4}-\d\d-\d\dT[\d:.]{8,18}(?:Z|[+-]\d\d:\d\d) (?:stdout|stderr) "
    _HEAD: ClassVar = re.compile(_LINE + rb"[PF] [^\n]{0,300}?" + STAMP, re.MULTILINE)
    _WHOLE_OR_PART: ClassVar = re.compile(_LINE + rb"(?:F |P ([^\n]*)\n)", re.MULTILINE)

    @classmethod
    def wrote(cls, head: bytes) -> bool:
        """Whether ``head`` is of this kind."""
        named = b" stdout " in head or b" stderr " in head
        return named and cls._HEAD.search(head) is not None

    @classmethod
    def lines(cls, data: bytes) -> bytes:
        """``data`` without the prefixes, parts of lines put together again."""
        return cls._WHOLE_OR_PART.sub(rb"\1", data)

    def rewrite(self, lines: bytes) -> bytes:
        return self.lines(lines)
