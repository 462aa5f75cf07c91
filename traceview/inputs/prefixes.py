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
from collections.abc import Callable, Iterator
from functools import partial

import msgspec

from traceview import limits
from traceview.inputs.streams import READ_ERRORS, Layer, Stream
from traceview.json_errors import NOT_JSON

#: A line of torch's loggers, up to the place in the source that wrote it.
STAMP = rb"[VIWEC]\d{4} \d\d:\d\d:\d\d\.\d{6} +\d{1,18} +(?:[A-Za-z]:)?[^:\]\n]{1,1024}:\d{1,9}\]"
_TORCH = re.compile(rb"[VIWEC]\d{4} \d\d:\d\d:\d\d\.\d{6} ")


#: Lines, each with its end but perhaps the last, as they are to be read.
Rewrite = Callable[[bytes], bytes]


class Rewritten(Layer):
    """Whole lines of a stream, rewritten; one above ``line`` is rewritten in pieces."""

    def __init__(self, below: Stream, rewrite: Rewrite) -> None:
        super().__init__(below)
        self._rewrite = rewrite
        self._rest = b""
        self._ready = b""
        self._inside = False
        self._ended: Exception | bool = False

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
        if self._ended or (not end and len(data) > limits.now.line):
            end = len(data)
        self._rest = data[end:]
        return self._lines(data[:end])

    def _lines(self, data: bytes) -> bytes:
        """What goes on with a line begun before is left as it is."""
        start = (data.find(b"\n") + 1 or len(data)) if self._inside else 0
        if data:
            self._inside = not data.endswith(b"\n")
        return data[:start] + (self._rewrite(data[start:]) if start < len(data) else b"")


def _strip(pattern: re.Pattern[bytes], lines: bytes) -> bytes:
    """``lines`` without what ``pattern`` finds at their beginning, the line feed before it."""
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


_DECODER = msgspec.json.Decoder(_Wrapped)
_DOCKER_HEAD = re.compile(
    rb'^\{"(?:[^\n]{0,2000}?")??(?:log|message|msg|textPayload|line)": ?"[^\n]{0,300}?' + STAMP,
    re.MULTILINE,
)


def _docker(lines: bytes) -> bytes:
    """Lines wrapped in JSON: docker's json-file driver and collectors that do the same."""
    found = []
    for line in lines.splitlines(keepends=True):
        try:
            row = _DECODER.decode(line)
        except NOT_JSON:
            found.append(line)
            continue
        if row.log is not None:  # its line end, if any, is part of the text
            text = row.log
        else:
            bare = row.message or row.msg or row.textPayload or row.line or ""
            text = bare.removesuffix("\n") + "\n"
        found.append(text.encode("utf-8", "replace"))
    return b"".join(found)


#: Lines of the container runtimes under kubernetes: ``time stream F text``, P for a part of one.
_CRI = rb"^\d{4}-\d\d-\d\dT[\d:.]{8,18}(?:Z|[+-]\d\d:\d\d) (?:stdout|stderr) "
_CRI_HEAD = re.compile(_CRI + rb"[PF] [^\n]{0,300}?" + STAMP, re.MULTILINE)
_WHOLE_OR_PART = re.compile(_CRI + rb"(?:F |P ([^\n]*)\n)", re.MULTILINE)


class _Collector(msgspec.Struct, frozen=True):
    """One that is known by name: what stands in a head that it wrote, cheaply and surely."""

    marks: re.Pattern[bytes]
    wrote: re.Pattern[bytes]
    rewrite: Rewrite


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
_COLLECTORS = {
    "docker": _Collector(re.compile(rb"\A\{"), _DOCKER_HEAD, _docker),
    "cri": _Collector(
        re.compile(b" stdout | stderr "), _CRI_HEAD, partial(_WHOLE_OR_PART.sub, rb"\1")
    ),
}
#: Shapes that are believed: the most common, each before at least this share of torch's lines.
_SHAPES, _LEAST_SHARE = 4, 0.1


def style_of(head: bytes) -> Style:
    """The style of the prefixes in a log that begins with ``head``; "" for none."""
    for name, collector in _COLLECTORS.items():
        if collector.marks.search(head) and collector.wrote.search(head):
            shape = _shapes(collector.rewrite(head))
            return f"{name}\n{shape}" if shape else name
    return _shapes(head)


def without(stream: Stream, style: Style) -> Stream:
    """``stream`` without its prefixes."""
    for rewrite in _steps(style):
        stream = Rewritten(stream, rewrite)
    return stream


def stripped(head: bytes, style: Style) -> bytes:
    """The lines of ``head`` without their prefixes."""
    for rewrite in _steps(style):
        head = rewrite(head)
    return head


def _steps(style: Style) -> Iterator[Rewrite]:
    for step in style.split("\n") if style else ():
        if step in _COLLECTORS:
            yield _COLLECTORS[step].rewrite
        else:
            # with the line feed, since a search for what begins with a character is fast
            yield partial(_strip, re.compile(b"\n(?:" + step.encode("latin-1") + b")"))


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
            # Words and numbers are made general; the rank is a group.
            text = prefix.decode("latin-1")
            rank = next(filter(None, (pattern.search(text) for pattern in _RANKS)), None)
            if rank is None:
                shape = _general(text)
            else:
                first, last = rank.span(1) if rank.re.groups else rank.span()
                shape = _general(text[:first]) + r"(\d{1,6})" + _general(text[last:])
            shapes[shape] += 1
    least = _LEAST_SHARE * sum(shapes.values())
    common = [shape for shape, times in shapes.most_common(_SHAPES) if times >= least]
    if not common or common[0] == "":
        return ""
    return "|".join(sorted(filter(None, common), key=len, reverse=True))


def _general(text: str) -> str:
    kinds = {"word": r"\w+", "space": " +"}
    return "".join(
        kinds.get(str(piece.lastgroup)) or re.escape(piece[0]) for piece in _PIECE.finditer(text)
    )
