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
from collections.abc import Iterator

from traceview.inputs.kinds import STAMP
from traceview.inputs.streams import Stream
from traceview.inputs.wrapped import Cri, Docker, Stripped

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
#: Shapes that are believed: at most so many, each before so large a share of torch's lines.
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
    shapes = Counter(_shape(prefix.decode("latin-1")) for prefix in _prefixes(head))
    least = _LEAST_SHARE * sum(shapes.values())
    common = [shape for shape, times in shapes.most_common(_SHAPES) if times >= least]
    if not common or common[0] == "":
        return ""
    return "|".join(sorted(filter(None, common), key=len, reverse=True))


def _prefixes(head: bytes) -> Iterator[bytes]:
    """What stands before the first stamp of each line that has one."""
    done = -1
    for stamp in _STAMPED.finditer(head):
        start = head.rfind(b"\n", 0, stamp.start()) + 1
        if start != done:
            prefix = _TORCHS_OWN.sub(b"", head[start : stamp.start()])
            done = start
            if len(prefix) <= _LONGEST:
                yield prefix


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
