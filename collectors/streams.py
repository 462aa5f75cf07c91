"""The script's streams: stderr passed on live and kept in a file, stdin the same in every pass."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import stat
import subprocess
import termios
import time
import tty
from collections.abc import Callable
from pathlib import Path

from traceview.run import OWNERS

_CHUNK = 1 << 16


class StderrTee:
    """One end for the child to write to (``child_end``), one for us to read from.

    Where our own stderr is a terminal the child gets a terminal too, so that progress bars and
    colours stay as they were; otherwise a pipe. ``full`` says why the file could not take all.
    ``before_bytes`` is called before any are passed on: it clears the progress line.
    """

    def __init__(self, path: Path, onto: int, before_bytes: Callable[[], None]) -> None:
        self._before_bytes = before_bytes
        self._onto: int | None = onto
        self.is_terminal = os.isatty(onto)
        self.full: str | None = None
        self.at_line_start = True
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, OWNERS)
        if self.is_terminal:  # a pseudo-terminal of the same size that changes no byte
            self._ours, self.child_end = os.openpty()
            with contextlib.suppress(termios.error):
                attributes = termios.tcgetattr(self.child_end)
                # The real terminal turns \n into \r\n itself; done twice, files and widths would
                # differ.
                attributes[tty.OFLAG] &= ~termios.OPOST
                attributes[tty.LFLAG] &= ~(termios.ECHO | termios.ECHONL)
                termios.tcsetattr(self.child_end, termios.TCSANOW, attributes)
            _copy_size(onto, self._ours)
        else:
            self._ours, self.child_end = os.pipe()
        self._open = True

    def started(self) -> None:
        """The child has its end: close ours, or the end would never be seen."""
        os.close(self.child_end)

    def pump(self, wait_s: float) -> bool:
        """Wait so long for bytes and pass on what is there; False if there was nothing."""
        if not self._open:
            time.sleep(wait_s)
            return False
        if not select.select([self._ours], [], [], wait_s)[0]:
            return False
        try:
            data = os.read(self._ours, _CHUNK)
        except OSError:  # EIO: the last writer of a pseudo-terminal is gone
            data = b""
        if not data:
            self._open = False
            return False
        self._before_bytes()
        self.at_line_start = data.endswith(b"\n")
        if self._onto is not None:
            try:
                _write_all(self._onto, data)
            except OSError:  # our stderr was closed; the file still gets everything
                self._onto = None
        if self.full is None:
            try:
                _write_all(self._file, data)
            except OSError as error:
                self.full = error.strerror or str(error)
        return True

    def drain(self, at_most_s: float) -> None:
        """Take what is still there; a grandchild that keeps its end open can't hold us up."""
        until = time.monotonic() + at_most_s
        while self._open and (left := until - time.monotonic()) > 0:
            self.pump(left)

    def resize(self) -> None:
        """Give the child's terminal the size of ours."""
        if self.is_terminal and self._onto is not None:
            _copy_size(self._onto, self._ours)

    def close(self) -> None:
        """Close what is ours."""
        os.close(self._ours)
        os.close(self._file)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(descriptor, view) :]
        except BlockingIOError:  # a terminal that someone set to non-blocking
            select.select([], [descriptor], [], 1.0)


def _copy_size(source: int, target: int) -> None:
    with contextlib.suppress(OSError):
        size = fcntl.ioctl(source, termios.TIOCGWINSZ, b"\0" * 8)
        fcntl.ioctl(target, termios.TIOCSWINSZ, size)


class Stdin:
    """The script's stdin: what the first pass read must be there again for the next.

    Remembers at the first pass what kind of stdin there is and where it stands.
    """

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor
        self._passes = 0
        self._start: int | None = None
        self._again = True
        try:
            mode = os.fstat(descriptor).st_mode
        except OSError:  # closed: the child finds it closed as well, each time
            return
        if stat.S_ISREG(mode):
            self._start = os.lseek(descriptor, 0, os.SEEK_CUR)
        else:
            self._again = stat.S_ISCHR(mode)  # a terminal, /dev/null

    def for_next_pass(self) -> tuple[int | None, str | None]:
        """What to hand to the child (None: ours), and a note where that is not what it had."""
        self._passes += 1
        if self._passes == 1 or self._again:
            if self._start is not None:
                # The child shares our descriptor's position: rewound here, rewound there.
                os.lseek(self._descriptor, self._start, os.SEEK_SET)
            return None, None
        note = (
            "stdin was a pipe and the first run read all of it, so this run had an empty stdin."
            " Use a file (< FILE) to give every run the same input."
        )
        return subprocess.DEVNULL, note
