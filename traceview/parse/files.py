"""Raw files, plain or packed, as streams of bytes, and the rank that a file's name has."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path

from traceview.inputs.packing import packing_of, unpacked
from traceview.inputs.streams import DamagedInput, Stream

_MAGIC_BYTES = 8
READ_ERRORS = (OSError, EOFError, zlib.error)


def find(folder: Path, name: str) -> Path | None:
    """``folder/name``, or the same with ``.gz``; None if neither is a file."""
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    return None


@contextmanager
def open_raw(path: Path) -> Iterator[BufferedIOBase]:
    """The bytes of ``path``, unpacked if it ends in ``.gz``; reading may raise ``READ_ERRORS``."""
    with path.open("rb") as file:
        if path.suffix == ".gz":
            with gzip.GzipFile(fileobj=file) as unpacked:
                yield unpacked
        else:
            yield file


def opened(path: Path) -> Stream:
    """The bytes of ``path``, unpacked; its first bytes say whether it is packed."""
    file = path.open("rb")
    packing = packing_of(file.read(_MAGIC_BYTES))
    file.seek(0)
    return unpacked(file, packing)


def damage_kind(error: Exception) -> str:
    """What an error of reading is called in table ``unreadable``."""
    if isinstance(error, DamagedInput):
        return error.kind
    if isinstance(error, gzip.BadGzipFile):
        return "not_gzip"
    return "truncated" if isinstance(error, (EOFError, zlib.error)) else "unreadable"


_RANK = re.compile(r"(?:^|[/_.\-])rank[_\-]?(\d{1,6})(?=[/_.\-]|$)", re.IGNORECASE)


def rank_in_name(name: str) -> int | None:
    """The rank in a file's name, or in the nearest folder's."""
    named = _RANK.findall(name)
    return int(named[-1]) if named else None
