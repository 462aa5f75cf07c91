"""Where the command line speaks: facts on stderr, results on stdout, progress only on a terminal."""

from __future__ import annotations

import shutil
import sys

import click


class Console:
    """Says one line at a time on stderr; ``progress`` shows a line that the next one replaces."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._shown = False

    def say(self, text: str) -> None:
        """One line for the user."""
        self.progress(None)
        click.echo(f"traceview: {text}", err=True)

    def progress(self, text: str | None) -> None:
        """Show ``text`` in place of the last progress line; None takes it away. Silent in a pipe."""
        if not self._terminal or (text is None and not self._shown):
            return
        width = shutil.get_terminal_size().columns - 1
        click.echo("\r\x1b[2K" + (f"traceview: {text}"[:width] if text else ""), err=True, nl=False)
        self._shown = text is not None


def stdout_width() -> int:
    """Columns of the terminal, at most 100; 80 in a pipe."""
    return min(shutil.get_terminal_size((80, 24)).columns, 100)


def stdout_color() -> bool:
    """Whether stdout is a terminal that wants colour (NO_COLOR is respected)."""
    import os

    return sys.stdout.isatty() and "NO_COLOR" not in os.environ
