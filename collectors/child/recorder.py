"""The events file: one JSON object a line, in the file before the call returns.

Each line is one ``os.write`` on a descriptor in append mode, so that whatever kills the process
leaves whole lines. Rows of steps and calls are gathered and written as batches.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from .secrets import masked_arguments, masked_message

FLUSH_S = 0.5  # rows stay in memory at most this long, at the next slow-path point


def write_whole(path: Path, data: bytes) -> None:
    """``data`` as a file of the run folder, as ``write_whole`` of ``traceview/run.py`` does it."""
    scratch = path.with_name(f".{path.name[:50]}.{os.getpid()}.part")
    try:
        scratch.touch(0o600)
        scratch.write_bytes(data)
        scratch.replace(path)
    except OSError:
        with suppress(OSError):
            scratch.unlink()
        raise


class Recorder:
    """Writes ``events-PID.jsonl``; after the first failed write it stays silent."""

    def __init__(self, raw: Path) -> None:
        self.raw = raw
        self.pid = os.getpid()
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
        self._fd: int | None = os.open(raw / f"events-{self.pid}.jsonl", flags, 0o600)
        self._rows: dict[tuple[tuple[str, Any], ...], list[list[Any]]] = {}
        self._flushed = time.monotonic()

    def write(self, event: str, **keys: object) -> None:
        """One event now; values that JSON does not know become their ``repr``."""
        if self._fd is None:
            return
        record = {"event": event, "t": time.time_ns() / 1000, **keys}
        data = (json.dumps(record, default=repr, skipkeys=True) + "\n").encode("ascii")
        try:
            while data:
                data = data[os.write(self._fd, data) :]
        except OSError:  # disk full: tried once, the script goes on without us
            self.close()

    def row(self, event: str, values: list[Any], **keys: object) -> None:
        """Add one row to the batch of ``event`` with these ``keys``."""
        self._rows.setdefault((("event", event), *sorted(keys.items())), []).append(values)

    def flush(self, *, due: bool = False) -> None:
        """Write the gathered batches; with ``due`` only if the last time was 0.5 s ago."""
        now = time.monotonic()
        if due and now - self._flushed < FLUSH_S:
            return
        self._flushed = now
        batches, self._rows = self._rows, {}
        for key, rows in batches.items():
            keys = dict(key)
            self.write(keys.pop("event"), **keys, rows=rows)

    def note(self, what: str, error: BaseException | str) -> None:
        """Something that could not be done, and why."""
        why = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
        self.write("note", what=what, why=masked_message(why[:4096]))

    def process(self, pass_name: str) -> None:
        """The event that opens the file. ``rank`` is RANK as torchrun sets it."""
        rank = os.environ.get("RANK", "")
        try:
            cwd = os.getcwd()  # noqa: PTH109 - a deleted folder must not end the script
        except OSError:
            cwd = None
        self.write(
            "process",
            pid=self.pid,
            rank=int(rank) if rank.isdigit() else None,
            argv=masked_arguments(getattr(sys, "argv", [])),
            cwd=cwd,
            python=platform.python_version(),
            platform=platform.platform(),
            **{"pass": pass_name},
        )

    def close(self) -> None:
        """Close the file without writing what is gathered."""
        fd, self._fd = self._fd, None
        self._rows = {}
        if fd is not None:
            with suppress(OSError):
                os.close(fd)


def said(error: BaseException) -> str:
    """The exception's type and the first line of its text."""
    first = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {first}"[:500]
