"""What launchers and log collectors put before each line, learned from the lines that torch wrote.

A torch line has its own beginning, so whatever stands before it was added. Its shape (words and
numbers may differ, the marks between them may not) is what is taken off every line:

    2026-11-20T20:09:53.123Z trainer-0 [rank3]: V1120 20:09:53.524000 5956 torch/…
    2026-11-20T20:09:53.124Z trainer-0 [rank3]: <tab>{

Two collectors do more than that and are known by name: docker's JSON lines, and the CRI format of
kubernetes, which breaks long lines. A rank that a prefix names is kept, where torch itself would
have put it.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import ClassVar

import msgspec

from traceview.inputs.streams import READ_ERRORS, Layer, Stream

#: A line of torch's loggers, up to the place in the source that wrote it.
STAMP = rb"[VIWEC]\d{4} \d\d:\d\d:\d\d\.\d{6} +\d{1,18} +(?:[A-Za-z]:)?[^:\]\n]{1,1024}:\d{1,9}\]"
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
    # the rank where torch itself would have put it: in front of its own lines alone
    lines = b"".join(
        [
            b"\n[rank%b]:%b" % (rank, line) if rank and _TORCH.match(line) else b"\n" + line
            for rank, line in bare
        ]
    )
    return (first + lines)[1:]


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


#: The steps that take prefixes off, one a line: a name of a collector, or a regular expression.
Style = str

_STAMPED = re.compile(STAMP)
_TORCHS_OWN = re.compile(rb"\[rank\d{1,6}\]:$")
_LONGEST = 300
_PIECE = re.compile(r"(?P<word>\w+)|(?P<space> +)|(?P<mark>.)", re.DOTALL | re.ASCII)
#: Where a prefix names the rank of the whole job: torchrun's template, mpirun, srun --label.
_RANKS = (
    re.compile(r"(?<=\[rank)\d{1,6}(?=\])"),
    re.compile(r"(?<=\|)\d{1,6}(?=\]:)"),
    re.compile(r"(?<=\[1,)\d{1,6}(?=\]<std)"),
    re.compile(r"^(?: *)(\d{1,6})(?=: *$)"),
)
_COLLECTORS: dict[str, type[Docker] | type[Cri]] = {"docker": Docker, "cri": Cri}
#: Shapes that are believed: the most common, each before at least this share of torch's lines.
_SHAPES, _LEAST_SHARE = 4, 0.1


def style_of(head: bytes) -> Style:
    """The style of the prefixes in a log that begins with ``head``; "" for none."""
    for name, collector in _COLLECTORS.items():
        if collector.wrote(head):
            shape = _shapes(collector.lines(head))
            return f"{name}\n{shape}" if shape else name
    return _shapes(head)


def without(stream: Stream, style: Style) -> Stream:
    """``stream`` without its prefixes."""
    for step in style.split("\n"):
        collector = _COLLECTORS.get(step)
        stream = collector(stream) if collector else Stripped(stream, step)
    return stream


def stripped(head: bytes, style: Style) -> bytes:
    """The lines of ``head`` without their prefixes."""
    for step in style.split("\n") if style else ():
        collector = _COLLECTORS.get(step)
        head = collector.lines(head) if collector else Stripped.lines(head, step)
    return head


def _shapes(head: bytes) -> str:
    """A regular expression for what stands before most of torch's lines; "" for nothing."""
    shapes = Counter[str]()
    done = -1
    for stamp in _STAMPED.finditer(head):
        start = head.rfind(b"\n", 0, stamp.start()) + 1
        if start == done:  # of a line only its first stamp
            continue
        done = start
        prefix = _TORCHS_OWN.sub(b"", head[start : stamp.start()])
        if len(prefix) <= _LONGEST:
            shapes[_shape(prefix.decode("latin-1"))] += 1
    least = _LEAST_SHARE * sum(shapes.values())
    common = [shape for shape, times in shapes.most_common(_SHAPES) if times >= least]
    if not common or common[0] == "":
        return ""
    return "|".join(sorted(filter(None, common), key=len, reverse=True))


def _shape(prefix: str) -> str:
    """Words and numbers of ``prefix`` made general; the rank is a group."""
    rank = next(filter(None, (pattern.search(prefix) for pattern in _RANKS)), None)
    if rank is None:
        return _general(prefix)
    start, end = rank.span(1) if rank.re.groups else rank.span()
    return _general(prefix[:start]) + r"(\d{1,6})" + _general(prefix[end:])


def _general(text: str) -> str:
    kinds = {"word": r"\w+", "space": " +"}
    return "".join(
        kinds.get(str(piece.lastgroup)) or re.escape(piece[0]) for piece in _PIECE.finditer(text)
    )
