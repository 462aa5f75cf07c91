"""Cutting in a process of its own, for a file that is worth it.

The other process reads the file and checks every digest; what it sends of a proven record is its
place alone, and the record's bytes are read here when their turn comes. Records and damage come in
the same order as from ``cuts``. A process that dies is no damage: the rest is cut here.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import msgspec

from traceview.parse.cutting.cutter import BLOCK_BYTES, cuts, key_of
from traceview.parse.cutting.shapes import CONTEXT, Record, Report

_BATCH = 256
_LENGTH_BYTES = 4
_COMMAND = """import sys
sys.path[:] = sys.argv[2:]
from traceview.parse.cutting.ahead import main
main()"""


class _Place(msgspec.Struct, array_like=True, tag="p", gc=False):
    """A proven record: its place, how long its prefix and its payload are, and how many lines."""

    line: int
    offset: int
    length: int
    prefix: int
    payload: int
    lines: int


class _Loose(msgspec.Struct, array_like=True, tag="l", gc=False):
    """A record that was put together or repaired."""

    record: Record


class _Damage(msgspec.Struct, array_like=True, tag="d", gc=False):
    """A piece of damage."""

    kind: str
    line: int
    example: str


class _End(msgspec.Struct, array_like=True, tag="e", gc=False):
    """All was cut."""


_Item = _Place | _Loose | _Damage | _End
_DECODER = msgspec.msgpack.Decoder(list[_Item])


def cuts_ahead(path: Path, report: Report) -> Iterator[Record]:
    """What ``cuts`` gives of the file, cut by another process."""
    offset, line = 0, 1
    with path.open("rb", buffering=BLOCK_BYTES) as file:
        loose: list[_Loose | _Damage] = []  # behind the last place: cut again if the rest is lost
        for item in _items(path):
            if isinstance(item, _Place):
                yield from _tell(loose, report)
                record = _record(file, item)
                if record is None:
                    break
                yield record
                offset, line = item.offset + item.length + 1, item.line + item.lines
            elif isinstance(item, _End):
                yield from _tell(loose, report)
                return
            else:
                loose.append(item)
        file.seek(offset)
        yield from cuts(file, report, offset, line)


def _items(path: Path) -> Iterator[_Item]:
    """What the other process finds; ends without ``_End`` where it died."""
    command = [sys.executable, "-c", _COMMAND, os.fspath(path), *sys.path]
    quiet = subprocess.DEVNULL
    try:
        other = subprocess.Popen(command, stdin=quiet, stdout=subprocess.PIPE, stderr=quiet)
    except OSError:
        return
    assert other.stdout is not None
    try:
        with suppress(msgspec.DecodeError):
            while head := other.stdout.read(_LENGTH_BYTES):
                yield from _DECODER.decode(other.stdout.read(int.from_bytes(head, "little")))
    finally:
        other.kill()
        other.stdout.close()
        other.wait()


def _tell(loose: list[_Loose | _Damage], report: Report) -> Iterator[Record]:
    for item in loose:
        if isinstance(item, _Loose):
            yield item.record
        else:
            report(item.kind, item.line, item.example)
    loose.clear()


def _record(file: BinaryIO, place: _Place) -> Record | None:
    """The record at ``place``, its payload with tabs still; None if the file was changed since."""
    file.seek(place.offset)
    data = file.read(place.length)
    envelope, _, payload = data[place.prefix :].partition(b"\n")
    key = key_of(envelope)
    try:
        context = CONTEXT.decode(envelope)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if key is None or len(data) < place.length:
        return None
    return Record(
        place.line, data[: place.prefix], envelope, key, context, payload if place.payload else b"",
        size=place.payload, offset=place.offset, length=place.length,
    )  # fmt: skip


def main() -> None:
    """The other process: cuts the file that the command line names."""
    gc.disable()
    items: list[_Item] = []

    def report(kind: str, line: int, example: str) -> None:
        items.append(_Damage(kind, line, example))

    with Path(sys.argv[1]).open("rb", buffering=0) as file:
        for cut in cuts(file, report):
            items.append(_place(cut) if cut.length else _Loose(cut))
            if len(items) >= _BATCH or not cut.length:
                _send(items)
        items.append(_End())
        _send(items)


def _place(record: Record) -> _Place:
    lines = max(1, record.length - len(record.prefix) - len(record.envelope) - record.size)
    return _Place(record.line, record.offset, record.length, len(record.prefix), record.size, lines)


def _send(items: list[_Item]) -> None:
    data = msgspec.msgpack.encode(items)
    sys.stdout.buffer.write(len(data).to_bytes(_LENGTH_BYTES, "little") + data)
    sys.stdout.buffer.flush()
    items.clear()
