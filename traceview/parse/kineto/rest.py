"""The rest of a large trace, read by a process of its own while the beginning is read here.

Both count bytes as they are unpacked, and meet behind the first event that ends at or after
``offset``. The rest comes when it is whole: if its process dies it is read here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from traceview.inputs.packing import packing_of
from traceview.parse import beside
from traceview.parse.damage import Damage

#: A trace from this size on is worth it, unpacked.
AHEAD_BYTES = 64 << 20
#: Of these the part that is read here: the other process has to start first.
_SHARE = 0.56
_OTHER = "traceview.parse.kineto.other"
_MAGIC_BYTES, _SIZE_BYTES = 8, 4


class Words(msgspec.Struct, array_like=True, tag="words", gc=False):
    """What the numbers of one sort of events stand for, in the other process."""

    sort: int
    whats: list[tuple[Any, Any, Any, Any]]
    writings: list[bytes]


class Rows(msgspec.Struct, array_like=True, tag="rows", gc=False):
    """The columns of some events of one sort, each as an array's bytes."""

    sort: int
    columns: list[bytes]


class Damaged(msgspec.Struct, array_like=True, tag="damaged", gc=False):
    """Damage of one kind."""

    kind: str
    times: int
    example: str


class End(msgspec.Struct, array_like=True, tag="end", gc=False):
    """All was read: what stands behind the events, and the bytes up to there, unpacked."""

    tail: bytes
    bytes_read: int


Item = Words | Rows | Damaged | End
_DECODER = msgspec.msgpack.Decoder(list[Item])


class Rest(msgspec.Struct):
    """What another process reads of a trace, from ``offset`` on; ``bytes_read`` once it has."""

    task: list[str]
    offset: int
    bytes_read: int | None = None

    def take(self, keep: Callable[[Words | Rows], None], name: str, damage: Damage) -> End | None:
        """Hand over everything that was read, once it is whole; None if it never will be."""
        items = list(beside.received(_OTHER, self.task, _DECODER))
        end = items[-1] if items else None
        if not isinstance(end, End):
            return None
        for item in items:
            if isinstance(item, Damaged):
                damage.count(name, item.kind, None, item.example, times=item.times)
            elif not isinstance(item, End):
                keep(item)
        self.bytes_read = end.bytes_read
        return end


@contextmanager
def rest_begun(path: Path | None) -> Iterator[Rest | None]:
    """Another process begins with the rest of a large trace, plain or gzipped; None of others."""
    size = 0 if path is None else _unpacked(path)
    if path is None or size < AHEAD_BYTES:
        yield None
        return
    offset = int(size * _SHARE)
    task = [os.fspath(path), str(offset)]
    with beside.begun(_OTHER, task):
        yield Rest(task, offset)


def _unpacked(path: Path) -> int:
    """Bytes of ``path``, unpacked; 0 where that is not known.

    A gzip file ends with them, modulo 4 GiB. Where it says something else, the two parts are not
    equally long.
    """
    try:
        with path.open("rb") as file:
            packing = packing_of(file.read(_MAGIC_BYTES))
            size = file.seek(0, os.SEEK_END)
            if packing == "gzip":
                file.seek(size - _SIZE_BYTES)
                return int.from_bytes(file.read(), "little")
    except OSError:
        return 0
    return size if not packing else 0
