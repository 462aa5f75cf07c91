"""The errors that end a command.

    TraceviewError            one sentence of fact, one of remedy, a slug
    ├── UsageError            the command line or a setting is wrong             exit code 2
    ├── NothingToAnalyse      there is no run, no log, no table to look at       exit code 4
    ├── TargetUnusable        the target's interpreter or script can't be run    exit code 2
    └── RunFolderError        the output folder can't be made, read or written   exit code 2

A failure of the *user's script* is not one of them: it is recorded in the run folder, comes first
in the report, and results in exit code 3.
"""

from __future__ import annotations


class TraceviewError(Exception):
    """A fact and a remedy; the command line prints both and no traceback."""

    exit_code = 2

    def __init__(self, fact: str, remedy: str, *, slug: str) -> None:
        super().__init__(fact)
        self.fact = fact
        self.remedy = remedy
        self.slug = slug


class UsageError(TraceviewError):
    """The command line or a setting is wrong."""


class NothingToAnalyse(TraceviewError):
    """There is no run, no log or no table to look at."""

    exit_code = 4


class TargetUnusable(TraceviewError):
    """The target's interpreter or script can't be run at all."""


class RunFolderError(TraceviewError):
    """The output folder can't be made, read or written."""
