"""Python's own warnings on stderr: ``FILE:LINE: Category: message``, then the source line."""

from __future__ import annotations

import re

from traceview.parse.messages import clean
from traceview.parse.textlogs.sink import RawLine, Row, Sink

_HEAD = re.compile(
    r"^(?P<file>[^\n]{1,1000}?):(?P<line>\d{1,9}): (?P<category>[A-Za-z_][\w.]{0,100}Warning): "
    r"(?P<message>.*)$"
)
_KINDS = (
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
        if b"Warning: " in raw.data and (match := _HEAD.match(clean(raw.data))):
            self.end()
            self._begin(match, raw.number)
        elif self._row is not None:
            self._continue(clean(raw.data))

    def end(self) -> None:
        """Nothing more belongs to the open warning."""
        self._row = None
        self._more = []

    def _begin(self, match: re.Match[str], number: int) -> None:
        self._row = self._sink.put(
            "warnings",
            {
                "pass": self._sink.pass_name,
                "kind": _kind(match["message"]),
                "category": match["category"],
                "message": match["message"][:MESSAGE_CHARACTERS],
                "file": match["file"],
                "line": int(match["line"]),
                "raw_file": self._sink.raw_file,
                "raw_line": number,
            },
        )

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
    return next((kind for kind, words in _KINDS if words in message), "python_warning")
