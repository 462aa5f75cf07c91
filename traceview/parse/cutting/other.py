"""The process that cuts ahead: its standard output is a stream of ``places``.

Sending has a thread of its own and a few lists to send, so that neither process waits for the
other's slow moments.
"""

from __future__ import annotations

import gc
import os
import re
import sys
from pathlib import Path
from queue import Queue
from threading import Thread

import msgspec

from traceview.parse.beside import send
from traceview.parse.cutting.cutter import cuts
from traceview.parse.cutting.places import Damaged, End, Item, Loose, Place
from traceview.parse.cutting.shapes import Cut
from traceview.parse.payloads.readers import told

RECORDS = 256
"""Records in one list,"""
PAYLOAD_BYTES = 1 << 20
"""or fewer, where their payloads are as long as this."""
_LISTS = 16

_ARTIFACT = re.compile(rb'\{"artifact": \{"name": "([\w.]{1,100})"')


def main() -> None:
    """Cut the file that the command line names."""
    gc.disable()
    lists: Queue[bytes] = Queue(_LISTS)
    sender = Thread(target=_send, args=(lists,), daemon=True)
    sender.start()
    items: list[Item] = []
    held = 0

    def report(kind: str, line: int, example: str) -> None:
        items.append(Damaged(kind, line, example))

    with Path(sys.argv[1]).open("rb", buffering=0) as file:
        for cut in cuts(file, report):
            items.append(_place(cut) if cut.length else Loose(cut))
            held += cut.size
            if len(items) >= RECORDS or held >= PAYLOAD_BYTES or not cut.length:
                lists.put(msgspec.msgpack.encode(items))
                items.clear()
                held = 0
    items.append(End())
    lists.put(msgspec.msgpack.encode(items))
    lists.put(b"")
    sender.join()


def _send(lists: Queue[bytes]) -> None:
    try:
        while data := lists.get():
            send(sys.stdout.buffer, data)
    except OSError:  # nobody reads any more
        os._exit(1)


def _place(cut: Cut) -> Place:
    prefix, envelope = map(len, cut.head)
    name = _ARTIFACT.match(cut.head[1]) if cut.key == "artifact" else None
    return Place(
        cut.line, cut.pid, cut.key, cut.context, cut.size,
        told(name[1].decode() if name else cut.key, cut.raw),
        offset=cut.offset, length=cut.length, prefix=prefix, envelope=envelope,
        lines=max(1, cut.length - prefix - envelope - cut.size),
    )  # fmt: skip
