"""perf_hints and schedule: what Inductor says while it schedules a graph."""

from __future__ import annotations

import re

from traceview.parse.messages import Message
from traceview.parse.textlogs.sink import Row, Sink, heads, split_at

_HINTS = (
    ("Using FallbackKernel: ", "fallback_kernel"),
    ("Skip comprehensive padding", "padding"),
    ("Reduction over non-contiguous dims.", "non_contiguous_reduction"),
    ("Found optimal tiling", "tiling"),
    ("possibly bad tiling", "tiling"),
    ("Grad tensors ", "grad_copy"),
)
_HINT_STARTS = tuple(start for start, _ in _HINTS)
_HINT_HEADS = heads(*_HINT_STARTS)
_SCHEDULE_HEADS = heads("Schedule:")
_HINT_CHARACTERS, _HINTS_SEEN = 16_000, 1_000
_LONG_HINT = "Reduction over non-contiguous dims."  # the only one of more than one line


class PerfHints:
    """Rows of perf_hints; the same hint of the same compile is one row with ``times``."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._seen: dict[tuple[int, str | None, str], Row] = {}

    def message(self, message: Message) -> None:
        for offset, text in split_at(message.text, _HINT_HEADS):
            alone = text.startswith(_HINT_STARTS) and not text.startswith(_LONG_HINT)
            for at, part in enumerate(text.split("\n", 1) if alone else (text,)):
                self._hint(message, offset + at, part.strip())

    def _hint(self, message: Message, offset: int, text: str) -> None:
        key = (message.pid, message.compile_id, text[:_HINT_CHARACTERS])
        row = self._seen.get(key)
        if row:
            row["times"] += 1
        elif text:
            kind = next((kind for head, kind in _HINTS if text.startswith(head)), "other")
            if len(self._seen) >= _HINTS_SEEN:
                del self._seen[next(iter(self._seen))]
            self._seen[key] = self._sink.add(
                "perf_hints", message, offset, kind=kind, message=key[-1], times=1
            )


class Schedules:
    """Rows of schedules: the nodes that end up in one generated kernel (GPU only)."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def message(self, message: Message) -> None:
        for offset, lines in split_at(message.text, _SCHEDULE_HEADS):
            if lines.startswith("Schedule:"):
                text = lines.partition("\n")[2].strip()
                nodes = re.findall(r"SchedulerNode\(name='([^']{1,200})'", text)
                self._sink.add("schedules", message, offset, nodes=nodes, text=text)
