"""output_code: the modules that Inductor wrote, and the kernels in them."""

from __future__ import annotations

import re
from functools import lru_cache

from traceview.parse.structured.kernels import module_rows
from traceview.parse.textlogs.messages import Message
from traceview.parse.textlogs.sink import Row, Sink, split_at

_AOT_ID = re.compile(r"^# AOT ID: \['(?P<id>[\w.]{1,100})'\]", re.MULTILINE)
_WRITTEN = re.compile(r"^Output code written to: (?P<file>.+)$")
_HEADS = ("Output code: ", "Output code:", "Output code written to: ")


class OutputCode:
    """Rows of graphs with kind ``output_code``, and of generated_kernels."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._last: dict[tuple[int, str | None], Row] = {}

    def message(self, message: Message) -> None:
        key = (message.pid, message.compile_id)
        for offset, lines in split_at(message.lines, _HEADS):
            written = _WRITTEN.match(lines[0])
            if written is not None and key in self._last:
                self._last[key].setdefault("file", written["file"])
            elif written is None and lines[0].startswith("Output code:") and len(lines) > 1:
                self._last[key] = self._module(message, offset, "\n".join(lines[1:]))

    def _module(self, message: Message, offset: int, text: str) -> Row:
        name = self._sink.name(message)
        aot_id = _AOT_ID.search(text, 0, 4_000)
        columns: Row = {"aot_id": aot_id["id"] if aot_id else None}
        for kernel in _kernels(text):
            self._sink.add("generated_kernels", message, offset, **columns, **kernel)
        columns |= {"attempt": name.attempt if name else None, "kind": "output_code", "text": text}
        return self._sink.add("graphs", message, offset, **columns)


@lru_cache(maxsize=32)
def _kernels(text: str) -> tuple[Row, ...]:
    """Rows of the kernels in a module; ranks that write to one log often have the same ones."""
    return tuple(module_rows(text)[0])
