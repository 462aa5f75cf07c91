"""Trials: the target runs once more, with remedies in turns with what the script does by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from traceview.collectors.options import CollectOptions, Console
from traceview.run import Run


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be tried: settings, or a unified diff of one of the user's files."""

    name: str
    settings: tuple[str, ...] = ()
    patch: str | None = None


def run_trials(
    options: CollectOptions,
    run: Run,
    asked: Sequence[Asked],
    *,
    seconds: float,
    baseline: Literal["compiled", "eager"] = "compiled",
    console: Console,
) -> Path:
    """Run the target once more with these trials; returns the raw folder of that process."""
    raise NotImplementedError
