"""Warnings: of torch's loggers (levels W, E and C, which are written without TORCH_LOGS too), of
Python and of torch's C++ half. The latter two stand on stderr:

    FILE:LINE: Category: message, then the source line
    [rank0]:[W1121 11:59:41.761288268 ProcessGroupNCCL.cpp:1250] Warning: … (function …)
"""

from __future__ import annotations

import re

from traceview.parse.messages.shapes import Message, clean
from traceview.parse.textlogs.sink import RawLine, Row, Sink
from traceview.torchtext.frames import first_user_frame, parse_traceback

_PYTHON = re.compile(
    r"^(?P<file>[^\n]{1,1000}?):(?P<line>\d{1,9}): (?P<category>[A-Za-z_][\w.]{0,100}Warning): "
    r"(?P<message>.*)$"
)
_PYTHON_KINDS = (
    ("tf32", "TensorFloat32 tensor cores"),
    ("complex_fallback", "does not support code generation for complex"),
    ("few_sms", "Not enough SMs to use max_autotune_gemm mode"),
)
MESSAGE_LINES = 10
MESSAGE_CHARACTERS = 16_000


class PythonWarnings:
    """Rows of warnings from raw lines of stderr.

    A message goes on to the source line that Python quotes, which is indented by two; where none
    comes within ten lines, the message is its first line.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._row: Row | None = None
        self._more: list[str] = []

    @property
    def open(self) -> bool:
        """Whether the next line may belong to a message."""
        return self._row is not None

    def line(self, raw: RawLine) -> None:
        """Read one line; cheap for a line that has nothing to do with a warning."""
        if b"Warning: " in raw.data and (match := _PYTHON.match(clean(raw.data))):
            self.end()
            self._row = self._sink.raw(
                "warnings",
                raw.number,
                kind=_kind(match["message"]),
                category=match["category"],
                message=match["message"][:MESSAGE_CHARACTERS],
                file=match["file"],
                line=int(match["line"]),
            )
        elif self._row is not None:
            self._continue(clean(raw.data))

    def end(self) -> None:
        """Nothing more belongs to the open warning."""
        self._row = None
        self._more = []

    def _continue(self, text: str) -> None:
        if self._row is not None and text.startswith("  ") and text[2:3].strip():
            message = "\n".join([self._row["message"], *self._more])[:MESSAGE_CHARACTERS]
            self._row.update(message=message, kind=_kind(message))
            self.end()
        elif len(self._more) < MESSAGE_LINES:
            self._more.append(text)
        else:
            self.end()


def _kind(message: str) -> str:
    return next((kind for kind, words in _PYTHON_KINDS if words in message), "python_warning")


_CPP = re.compile(
    r"(?:\[rank(?P<rank>\d{1,6})\]:)?\[(?P<level>[WEF])\d{4} \d\d:\d\d:\d\d\.\d{1,9} "
    r"(?P<file>[\w./-]{1,300}):(?P<line>\d{1,9})\] (?P<message>.+)$"
)


class CppWarnings:
    """Rows of warnings from raw lines of stderr; a message is its first line."""

    open = False

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def line(self, raw: RawLine) -> None:
        """Read one line."""
        if b".cpp:" in raw.data and (match := _CPP.search(clean(raw.data))):
            self._sink.raw(
                "warnings",
                raw.number,
                rank=int(match["rank"]) if match["rank"] else None,
                kind="other",
                category=match["level"],
                message=match["message"][:MESSAGE_CHARACTERS],
                file=match["file"],
                line=int(match["line"]),
            )

    def end(self) -> None:
        """Nothing is open between lines."""


_LIMIT = re.compile(
    r"^torch\._dynamo hit config\.\w+ \(\d+\)\n\s*function: '(?P<function>.*)' "
    r"\((?P<file>.*):(?P<line>\d{1,9})\)"
)
_SUPPRESSED = re.compile(
    r"^WON'T CONVERT (?P<function>\S+) (?P<file>.*?) line (?P<line>\d{1,9})\s*$", re.MULTILINE
)
_EXCEPTION = re.compile(
    r"^(?P<class>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Failed|Interrupt|Unsupported|Exit)?)"
    r"(?:: .*)?$",
    re.MULTILINE,
)
_TORCH_KINDS = (
    ("cudagraph_skip", "skipping cudagraph"),
    ("cudagraph_skip", "disabling cudagraphs"),
    ("item_break", "Graph break from `Tensor.item()`"),
    ("few_sms", "Not enough SMs to use max_autotune_gemm mode"),
)


def torch_warnings(sink: Sink, message: Message) -> None:
    """Rows of warnings from loggers' messages."""
    text = message.text.strip()
    if text:
        columns = {"category": message.level, **torch_warning(text)}
        sink.add("warnings", message, message=text[:MESSAGE_CHARACTERS], **columns)


def torch_warning(text: str) -> Row:
    """kind and location of a warning's text, and the exception class of a suppressed failure."""
    limit = _LIMIT.match(text)
    if limit is not None:
        return {"kind": "recompile_limit", **_named(limit)}
    suppressed = _SUPPRESSED.match(text)
    if suppressed is not None:
        row = {"kind": "suppressed_failure", **_named(suppressed)}
        # The class that a traceback ends with: of the last that stands behind one.
        start = text.rfind("Traceback (most recent call last):", suppressed.end())
        if start >= 0 and (failed := _EXCEPTION.search(text, start + 1)):
            row["category"] = failed["class"]
        return row
    kind = next((kind for kind, head in _TORCH_KINDS if text.startswith(head)), "other")
    frame = first_user_frame(parse_traceback(text))
    if frame is None:
        return {"kind": kind}
    return {"kind": kind, "file": frame.file, "line": frame.line, "function": frame.function}


def _named(match: re.Match[str]) -> Row:
    return {"file": match["file"], "line": int(match["line"]), "function": match["function"]}
