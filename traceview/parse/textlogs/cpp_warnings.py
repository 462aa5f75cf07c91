"""Warnings of torch's C++ half on stderr (``c10/util/Logging.cpp``):

[rank0]:[W1121 11:59:41.761288268 ProcessGroupNCCL.cpp:1250] Warning: … (function …)
"""

from __future__ import annotations

import re

from traceview.parse.messages import clean
from traceview.parse.textlogs.sink import RawLine, Sink

_LINE = re.compile(
    r"(?:\[rank(?P<rank>\d{1,6})\]:)?\[(?P<level>[WEF])\d{4} \d\d:\d\d:\d\d\.\d{1,9} "
    r"(?P<file>[\w./-]{1,300}):(?P<line>\d{1,9})\] (?P<message>.+)$"
)
MESSAGE_CHARACTERS = 16_000


class CppWarnings:
    """Rows of warnings from raw lines of stderr; a message is its first line."""

    open = False

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def line(self, raw: RawLine) -> None:
        """Read one line."""
        if b".cpp:" not in raw.data:
            return
        match = _LINE.search(clean(raw.data))
        if match is None:
            return
        row = {
            "pass": self._sink.pass_name,
            "rank": int(match["rank"]) if match["rank"] else None,
            "kind": "other",
            "category": match["level"],
            "message": match["message"][:MESSAGE_CHARACTERS],
            "file": match["file"],
            "line": int(match["line"]),
            "raw_file": self._sink.raw_file,
            "raw_line": raw.number,
        }
        self._sink.put("warnings", row)

    def end(self) -> None:
        """Nothing is open between lines."""
