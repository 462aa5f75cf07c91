"""Another process that reads the same file ahead: lists of items, each list's length before it.

It can be started before its items can be taken: it reads on while modules are imported.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import BinaryIO, TypeVar

import msgspec

from traceview import limits
from traceview.json_errors import NOT_JSON

_LENGTH_BYTES = 4
_ENTER = """import sys
sys.path[:] = sys.argv[{paths}:]
from {module} import main

main()"""
#: How far ahead the other process may be: with a pipe of the usual size the two alternate.
_PIPE_BYTES = 1 << 20

_T = TypeVar("_T")
_Process = subprocess.Popen[bytes]

#: Started; their items have not been asked for yet.
_begun: dict[tuple[str, ...], _Process] = {}


@contextmanager
def begun(
    module: str, arguments: list[str], environment: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Start ``main()`` of ``module``, whose items ``received`` gives; end it if unused."""
    task = (module, *arguments)
    with suppress(OSError):
        _begun[task] = _process(module, arguments, environment)
    try:
        yield
    finally:
        if other := _begun.pop(task, None):
            _end(other)


def received(
    module: str,
    arguments: list[str],
    decoder: msgspec.msgpack.Decoder[list[_T]],
    environment: Mapping[str, str] | None = None,
) -> Iterator[_T]:
    """The items that ``main()`` of ``module`` sends; they just end where its process died."""
    other = _begun.pop((module, *arguments), None)
    try:
        other = other or _process(module, arguments, environment)
    except OSError:
        return
    out = other.stdout
    assert out is not None
    try:
        with suppress(*NOT_JSON):
            while head := out.read(_LENGTH_BYTES):
                yield from decoder.decode(out.read(int.from_bytes(head, "little")))
    finally:
        _end(other)


def _process(module: str, arguments: list[str], environment: Mapping[str, str] | None) -> _Process:
    enter = _ENTER.format(module=module, paths=len(arguments) + 1)
    command = [sys.executable, "-c", enter, *arguments, *sys.path]
    quiet, pipe = subprocess.DEVNULL, subprocess.PIPE
    variables = {**os.environ, **limits.as_variable(), **(environment or {})}
    return subprocess.Popen(
        command, stdin=quiet, stdout=pipe, stderr=quiet, env=variables, pipesize=_PIPE_BYTES
    )


def _end(other: _Process) -> None:
    other.kill()
    if other.stdout is not None:
        other.stdout.close()
    other.wait()


def send(out: BinaryIO, items: bytes) -> None:
    """Write one list, encoded."""
    out.write(len(items).to_bytes(_LENGTH_BYTES, "little"))
    out.write(items)
    out.flush()
