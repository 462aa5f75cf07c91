"""The process that cuts ahead: its standard output is a stream of ``places``.

Sending has a thread of its own and some lists to send, so that neither process waits for the
other's slow moments, and this one is busy while the other imports what it needs.
"""

from __future__ import annotations

import gc
import os
import sys
from collections import deque
from pathlib import Path
from threading import Condition, Thread

import msgspec

from traceview.parse.beside import send
from traceview.parse.cutting.cutter import cuts
from traceview.parse.cutting.shapes import Cut, Damaged, End, Item, Loose, Place
from traceview.parse.payloads.metrics import Numbers
from traceview.parse.payloads.readers import told, told_by

RECORDS = 256
"""Records in one list,"""
PAYLOAD_BYTES = 1 << 20
"""or fewer, where their payloads are as long as this."""
_MOST_BYTES = 8 << 20
"""As many wait to be sent; with more lists than these waiting, there is time to read more:"""
_FEW_LISTS = 4


class _Waiting:
    """Lists that wait to be sent, in order."""

    def __init__(self) -> None:
        self._lists: deque[bytes] = deque()
        self._bytes = 0
        self._changed = Condition()

    def __len__(self) -> int:
        return len(self._lists)

    def put(self, data: bytes) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._bytes < _MOST_BYTES)
            self._lists.append(data)
            self._bytes += len(data)
            self._changed.notify_all()

    def get(self) -> bytes:
        with self._changed:
            self._changed.wait_for(lambda: self._lists)
            data = self._lists.popleft()
            self._bytes -= len(data)
            self._changed.notify_all()
        return data

    def send(self) -> None:
        """Send every list, until an empty one."""
        try:
            while data := self.get():
                send(sys.stdout.buffer, data)
        except OSError:  # the reader is gone
            os._exit(1)


def main() -> None:
    """Cut the file that the command line names."""
    gc.disable()
    lists = _Waiting()
    sender = Thread(target=lists.send, daemon=True)
    sender.start()
    items: list[Item] = []
    held, spare = 0, False
    numbers = Numbers()

    def report(kind: str, line: int, example: str) -> None:
        items.append(Damaged(kind, line, example))

    with Path(sys.argv[1]).open("rb", buffering=0) as file:
        for cut in cuts(file, report):
            items.append(_place(cut, spare, numbers) if cut.length else Loose(cut))
            held += cut.size
            if len(items) >= RECORDS or held >= PAYLOAD_BYTES or not cut.length:
                lists.put(msgspec.msgpack.encode(items))
                items.clear()
                held, spare = 0, len(lists) > _FEW_LISTS
    items.append(End())
    lists.put(msgspec.msgpack.encode(items))
    lists.put(b"")
    sender.join()


def _place(cut: Cut, spare: bool, numbers: Numbers) -> Place:
    prefix, envelope = map(len, cut.head)
    found = told(cut.name or cut.key, cut.raw, spare) or told_by(cut.head[1], cut.key, numbers)
    return Place(
        cut.line, cut.pid, cut.key, cut.context, cut.size, cut.stamp, found, name=cut.name,
        offset=cut.offset, length=cut.length, prefix_bytes=prefix, envelope_bytes=envelope,
        lines=max(1, cut.length - prefix - envelope - cut.size),
    )  # fmt: skip
