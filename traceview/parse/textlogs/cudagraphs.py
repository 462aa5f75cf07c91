"""cudagraph events: skipped, handed over, warmed up, captured (``torch/_inductor/cudagraph_*``).

Partition lines are written even where cudagraphs are off and prove nothing; a ``record`` row does.
"""

from __future__ import annotations

from msgspec.structs import asdict

from traceview.parse.messages.shapes import Message, clean
from traceview.parse.textlogs.sink import RawLine, Row, Sink, heads, split_at
from traceview.torchtext.cudagraphs import read_event
from traceview.torchtext.frames import parse_traceback, user_columns

_STACK_LINE, _STACK_LINES = " " * 9, 200
_ADVICE = "torch.compiler.cudagraph_mark_step_begin()"
_OVERWRITE_LINES = 40
_HEADS = heads(
    "skipping cudagraph",
    "disabling cudagraphs ",
    "Recording ",
    "Re-recording ",
    "Running ",
    "Checkpointing ",
    "Created ",
    "  Partition ",
    "Partition ",
    "    op",
    "[",
    "CUDAGraph supports ",
    _STACK_LINE,
)


class Cudagraphs:
    """Rows of cudagraph_events from TORCH_LOGS=cudagraphs; skips are written without it too."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._unplaced: tuple[Row, list[str]] | None = None

    def message(self, message: Message) -> None:
        for offset, text in split_at(message.text, _HEADS):
            if text.startswith(_STACK_LINE):
                self._stack(text)
                continue
            self._unplaced = None
            columns = cudagraph_event(text)
            if columns is not None:
                row = self._sink.add("cudagraph_events", message, offset, **columns, origin="text")
                if columns["event"] == "partition":
                    self._unplaced = (row, [])

    def _stack(self, text: str) -> None:
        """The stack of a node that splits a partition: a message of its own for every line."""
        if self._unplaced is not None:
            row, stack = self._unplaced
            if len(stack) < _STACK_LINES:
                stack.append(text)
            row.update(user_columns(parse_traceback("\n".join(stack))))


class Overwrites:
    """Rows of cudagraph_events from tracebacks on stderr: a cudagraph's output was overwritten."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._lines: list[str] = []
        self._number = 0

    @property
    def open(self) -> bool:
        """Whether the next line belongs to a message."""
        return bool(self._lines)

    def line(self, raw: RawLine) -> None:
        """Read one raw line; the message ends with torch's advice."""
        if b"output of CUDAGraphs that has been overwritten" in raw.data:
            self.end()
            text = clean(raw.data)
            self._lines, self._number = [text[max(0, text.find("Error: accessing")) :]], raw.number
        elif self._lines:
            self._lines.append(clean(raw.data))
        if self._lines and (_ADVICE in self._lines[-1] or len(self._lines) > _OVERWRITE_LINES):
            self.end()

    def end(self) -> None:
        """The open message is complete."""
        if self._lines:
            text = "\n".join(self._lines).replace("Stack trace: File ", "Stack trace:\n  File ", 1)
            columns = cudagraph_event(text) or {}
            self._sink.raw("cudagraph_events", self._number, **columns, origin="stderr")
        self._lines = []


def cudagraph_event(text: str) -> Row | None:
    """Columns of one message without its origin; None for an empty one."""
    if not text.strip():
        return None
    return asdict(read_event(text)) | user_columns(parse_traceback(text))
