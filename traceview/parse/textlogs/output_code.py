"""output_code: the modules that Inductor wrote, and the kernels in them."""

from __future__ import annotations

import re

from msgspec.structs import asdict

from traceview.parse.messages import Message
from traceview.parse.payloads.module import module
from traceview.parse.textlogs.sink import SAID_BY_RANKS, Row, Sink, heads, split_at

_WRITTEN = re.compile(r"^Output code written to: (?P<file>.+)$", re.MULTILINE)
_OPEN_MODULES = 256  # whose file may still be told
_HEADS = heads("Output code:", "Output code written to: ")
_read = SAID_BY_RANKS(module)


class OutputCode:
    """Rows of graphs with kind ``output_code``, and of generated_kernels."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._last: dict[tuple[int, str | None], Row] = {}

    def message(self, message: Message) -> None:
        key = (message.pid, message.compile_id)
        for offset, text in split_at(message.text, _HEADS):
            written = _WRITTEN.match(text)
            head, more, code = text.partition("\n")
            if written is not None and key in self._last:
                self._last[key].setdefault("file", written["file"])
            elif written is None and head.startswith("Output code:") and more:
                self._last.pop(key, None)
                if len(self._last) >= _OPEN_MODULES:
                    del self._last[next(iter(self._last))]
                self._last[key] = self._module(message, offset, code)

    def _module(self, message: Message, offset: int, text: str) -> Row:
        name = self._sink.name(message)
        found = _read(text)
        columns: Row = {"aot_id": found.aot_id}
        for kernel in found.kernels:
            self._sink.add("generated_kernels", message, offset, **columns, **asdict(kernel))
        columns |= {"attempt": name.attempt if name else None, "kind": "output_code", "text": text}
        return self._sink.add("graphs", message, offset, **columns)
