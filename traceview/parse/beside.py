"""Another process that reads the same file ahead: lists of items, each list's length before it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import BinaryIO, TypeVar

import msgspec

_LENGTH_BYTES = 4
_ENTER = """import sys
sys.path[:] = sys.argv[{paths}:]
from {module} import main
main()"""
#: The other process may be so far ahead: with a pipe of the usual size the two run by turns.
_PIPE_BYTES = 1 << 20

_T = TypeVar("_T")


def received(
    module: str,
    arguments: list[str],
    decoder: msgspec.msgpack.Decoder[list[_T]],
    environment: Mapping[str, str] | None = None,
) -> Iterator[_T]:
    """The items that ``main()`` of ``module`` sends; they just end where its process died."""
    enter = _ENTER.format(module=module, paths=len(arguments) + 1)
    command = [sys.executable, "-c", enter, *arguments, *sys.path]
    quiet, pipe = subprocess.DEVNULL, subprocess.PIPE
    variables = os.environ | (environment or {})
    try:
        other = subprocess.Popen(
            command, stdin=quiet, stdout=pipe, stderr=quiet, env=variables, pipesize=_PIPE_BYTES
        )
    except OSError:
        return
    assert other.stdout is not None
    try:
        with suppress(msgspec.DecodeError, UnicodeDecodeError):
            while head := other.stdout.read(_LENGTH_BYTES):
                yield from decoder.decode(other.stdout.read(int.from_bytes(head, "little")))
    finally:
        other.kill()
        other.stdout.close()
        other.wait()


def send(out: BinaryIO, items: bytes) -> None:
    """Write one list, encoded."""
    out.write(len(items).to_bytes(_LENGTH_BYTES, "little"))
    out.write(items)
    out.flush()
