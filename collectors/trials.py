"""Trials: the target runs once more, with remedies in turns with what the script does by itself."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from traceview.collectors.launch import Launch, launch
from traceview.collectors.options import CollectOptions, Console
from traceview.collectors.passes import child_config, for_pass, write_child_config
from traceview.collectors.probe import Target, find_target
from traceview.collectors.streams import Stdin
from traceview.run import Ending, Run

_NAME = "trials"


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be tried: settings (`traceview.collectors.child.settings`), or a patch.

    ``patch`` is a unified diff of one of the user's files.
    """

    name: str
    settings: tuple[str, ...] = ()
    patch: str | None = None


class Trials:
    """Runs the target for trials, as often as asked; all processes share one compile cache."""

    def __init__(self, options: CollectOptions, run: Run, console: Console) -> None:
        self._options, self._run, self._console = options, run, console
        self._target: Target | None = None
        self._stdin = Stdin()
        self._cache = run.folder / "cache" / _NAME

    def carry_out(
        self,
        asked: Sequence[Asked],
        *,
        seconds: float,
        baseline: Literal["eager", "compiled"] = "compiled",
        timeout_s: float | None = None,
    ) -> tuple[Path, Ending]:
        """One process; its folder, and how it ended. ``seconds`` in the blocks of each trial.

        What the script prints is in ``stdout.txt`` and ``stderr.txt`` of that folder.
        """
        self._target = self._target or find_target(self._options, self._console)
        raw = self._new_folder()
        prepared = for_pass(dict(os.environ), self._target, raw, self._cache)
        config = child_config(
            self._options, self._target, self._run.folder, raw, sorted(prepared.ours)
        )
        config |= {
            "pass": _NAME,
            "mode": "trials",
            "trials": [asdict(each) for each in asked],
            "trial_seconds": seconds,
            "trial_baseline": baseline,
            "timeout_s": timeout_s,
        }
        write_child_config(raw, config)
        stdin, _ = self._stdin.for_next_pass()
        with (raw / "stdout.txt").open("wb") as stdout, Path(os.devnull).open("wb") as nowhere:
            plan = Launch(
                command=self._options.command(self._target.python),
                variables=prepared.variables,
                raw=raw,
                timeout_s=timeout_s,
                stdin=stdin,
                stdout=stdout.fileno(),
                stderr=nowhere.fileno(),
            )
            outcome = launch(plan, self._console)
        return raw, outcome.ending

    def clear(self) -> None:
        """Remove the caches."""
        if not self._options.keep_cache:
            shutil.rmtree(self._cache, ignore_errors=True)

    def _new_folder(self) -> Path:
        """``raw/trials-1``, or the next that is not there yet."""
        number = 1
        while (folder := self._run.folder / "raw" / f"{_NAME}-{number}").exists():
            number += 1
        return folder
