"""Warnings of torch's loggers (levels W, E and C), which are written without TORCH_LOGS too."""

from __future__ import annotations

import re
from typing import Any

from traceview.parse.messages import Message
from traceview.parse.textlogs.sink import Row, Sink
from traceview.torchtext.frames import first_user_frame, parse_traceback

MESSAGE_CHARACTERS = 16_000

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
_PLAIN = (
    ("cudagraph_skip", "skipping cudagraph"),
    ("cudagraph_skip", "disabling cudagraphs"),
    ("item_break", "Graph break from `Tensor.item()`"),
    ("few_sms", "Not enough SMs to use max_autotune_gemm mode"),
)


class TorchWarnings:
    """Rows of warnings from loggers' messages."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def message(self, message: Message) -> None:
        text = message.text.strip()
        if text:
            columns = {"category": message.level, **torch_warning(text)}
            self._sink.add("warnings", message, message=text[:MESSAGE_CHARACTERS], **columns)


def torch_warning(text: str) -> Row:
    """kind and location of a warning's text, and the exception class of a suppressed failure."""
    limit = _LIMIT.match(text)
    if limit is not None:
        return {"kind": "recompile_limit", **_named(limit)}
    suppressed = _SUPPRESSED.match(text)
    if suppressed is not None:
        failed = _exception(text[suppressed.end() :])
        return {
            "kind": "suppressed_failure",
            **_named(suppressed),
            **({"category": failed} if failed else {}),
        }
    kind = next((kind for kind, head in _PLAIN if text.startswith(head)), "other")
    frame = first_user_frame(parse_traceback(text))
    if frame is None:
        return {"kind": kind}
    return {"kind": kind, "file": frame.file, "line": frame.line, "function": frame.function}


def _named(match: re.Match[str]) -> dict[str, Any]:
    return {
        "file": match["file"],
        "line": int(match["line"]),
        "function": match["function"],
    }


def _exception(text: str) -> str | None:
    """Class of the exception that a traceback ends with: of the last that stands behind one."""
    start = text.rfind("Traceback (most recent call last):")
    if start < 0:
        return None
    match = _EXCEPTION.search(text, start + 1)
    return match["class"] if match else None
