"""The errors that end a command.

    TraceviewError            one sentence of fact, one of remedy, a slug
    ├── UsageError            the command line or a setting is wrong             exit code 2
    ├── NothingToAnalyse      there is no run, no log, no table to look at       exit code 4
    ├── TargetUnusable        the target's interpreter or script can't be run    exit code 2
    └── RunFolderError        the output folder can't be made, read or written   exit code 2

A failure of the *user's script* is not one of them: it is recorded in the run folder, comes first
in the report, and results in exit code 3.

What is raised besides is a defect of traceview, and never reaches the user as a traceback: while a
log is read it costs the record or the file (``spared``), elsewhere it ends the command with exit
code 5. ``traceview --debug COMMAND`` shows where it was raised.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

#: Set by ``--debug``; processes that are started inherit it.
DEBUG = "TRACEVIEW_DEBUG"
DEFECT = 5


class TraceviewError(Exception):
    """A fact and a remedy; the command line prints both and no traceback."""

    exit_code = 2

    def __init__(self, fact: str, remedy: str, *, slug: str) -> None:
        super().__init__(fact)
        self.fact = fact
        self.remedy = remedy
        self.slug = slug

    def __reduce__(self) -> tuple[Any, ...]:
        """Raised by a reader process, it is the same here."""
        return partial(type(self), slug=self.slug), (self.fact, self.remedy)


class UsageError(TraceviewError):
    """The command line or a setting is wrong."""


class NothingToAnalyse(TraceviewError):
    """There is no run, no log or no table to look at."""

    exit_code = 4


class TargetUnusable(TraceviewError):
    """The target's interpreter or script can't be run at all."""


class RunFolderError(TraceviewError):
    """The output folder can't be made, read or written."""


class TimeIsUp(BaseException):
    """A file took too long; not an Exception, so that no handler takes it for its own."""


@contextmanager
def spared(tell: Callable[[str], None]) -> Iterator[None]:
    """``tell`` gets a defect in here, and the rest goes on; errors for the user are raised."""
    try:
        yield
    except (TraceviewError, OSError, MemoryError, TimeIsUp):
        raise
    except BaseException as error:
        if not is_defect(error):
            raise
        tell(described(error))


def is_defect(error: BaseException) -> bool:
    """Whether ``error`` ends no program on purpose; a panic of polars is no Exception."""
    named = type(error).__name__ == "PanicException"
    return named or isinstance(error, (Exception, TimeIsUp))


def described(error: BaseException) -> str:
    """Kind, text and innermost place of ours, in one line; ``--debug`` prints its traceback."""
    if DEBUG in os.environ:
        traceback.print_exception(error)
    here = Path(__file__).parent
    ours = [
        f"{Path(frame.filename).relative_to(here)}:{frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).is_relative_to(here)
    ]
    text = " ".join(f"{type(error).__name__}: {error}".split())[:200]
    return f"{text} ({ours[-1]})" if ours else text
