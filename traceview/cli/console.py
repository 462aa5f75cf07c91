"""Messages on stderr, progress on a terminal, and what kind of terminal stdout is."""

from __future__ import annotations

import os
import shutil
import sys
import time
from contextlib import suppress

import click

from traceview.words.text import clean

LINE_EVERY_S = 10.0
_NARROWEST = 60
_SAVE, _RESTORE = "\x1b7", "\x1b8"


class Console:
    """Prints single lines on stderr; ``progress`` shows a tag that the next one replaces.

    The script writes on the same terminal, so the position of the cursor is not known. The tag is
    written at the right edge of the current line, and the cursor restored. A terminal narrower than
    60 columns gets no tag. What is no terminal gets a line where there was none for 10 seconds;
    without ``lines`` none: a script writes there, too.
    """

    def __init__(self, *, lines: bool = True) -> None:
        self._lines = lines
        self._terminal = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._shown = 0
        self._line_at = time.monotonic()

    def say(self, text: str) -> None:
        """Print one line for the user."""
        self.progress(None)
        self._line(text)

    def progress(self, text: str | None) -> None:
        """Show ``text`` in place of the last tag; None removes it. In a pipe: seldom, as a line."""
        if self._lines and not self._terminal and text:
            if time.monotonic() - self._line_at >= LINE_EVERY_S:
                self._line(text)
            return
        width = shutil.get_terminal_size().columns
        if not self._terminal or (text is None and not self._shown):
            return
        tag = f"traceview: {text}"[: width * 3 // 4] if text and width >= _NARROWEST else ""
        if not tag and not self._shown:
            return
        column = width - max(len(tag), self._shown)
        drawn = f"\x1b[{width - len(tag)}G\x1b[2m{tag}\x1b[22m" if tag else ""
        with suppress(OSError):  # a terminal that is gone ends nothing
            text = f"{_SAVE}\x1b[{column}G\x1b[K{drawn}{_RESTORE}"
            click.echo(text, err=True, nl=False, color=True)
        self._shown = len(tag)

    def _line(self, text: str) -> None:
        with suppress(OSError):
            click.echo(f"traceview: {clean(text)}", err=True)
        self._line_at = time.monotonic()


def stdout_width() -> int:
    """Columns of the terminal, at most 100; 80 in a pipe."""
    return min(shutil.get_terminal_size((80, 24)).columns, 100)


def stdout_color() -> bool:
    """Whether to print in color: stdout is a terminal, and NO_COLOR is not set."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")
