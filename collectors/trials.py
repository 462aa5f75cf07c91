"""Trials: the target runs once more, with remedies in turns with what the script does by itself."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from traceview.collectors.child.edited import NONE
from traceview.collectors.child.settings import parse
from traceview.collectors.launch import Launch, launch
from traceview.collectors.options import CollectOptions, Console
from traceview.collectors.passes import child_config, for_pass, write_child_config
from traceview.collectors.probe import Target, find_target
from traceview.collectors.streams import Stdin
from traceview.run import TICKS, Ending, Run

_NAME = "trials"
_EDITED = str(Path(__file__).resolve().parent / "child" / "edited.py")


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be tried: settings (`traceview.collectors.child.settings`), or a patch.

    ``patch`` is a unified diff of one of the user's files.
    """

    name: str
    settings: tuple[str, ...] = ()
    patch: str | None = None


class Trials:
    """Runs the target for trials, as often as asked; all processes share the run's compile cache.

    The caches are removed at the end (a context manager), unless they are to be kept.
    """

    def __init__(self, options: CollectOptions, run: Run, console: Console) -> None:
        self._options, self._run, self._console = options, run, console
        self._target: Target | None = None
        self._stdin = Stdin()
        self._cache = run.folder / "cache"

    def carry_out(
        self,
        asked: Sequence[Asked],
        *,
        seconds: float,
        baseline: Literal["eager", "compiled"] = "compiled",
        timeout_s: float | None = None,
    ) -> tuple[Path, Ending]:
        """One process for all; its folder, and how it ended. ``seconds`` in each one's blocks."""
        config: dict[str, object] = {
            "mode": "trials",
            "trials": [asdict(each) for each in asked],
            "trial_baseline": baseline,
        }
        return self._run_once(config, seconds, timeout_s)

    def carry_out_apart(
        self, asked: Asked | None, *, seconds: float, timeout_s: float | None = None
    ) -> tuple[Path, Ending]:
        """A process of its own, compiled all the way, with a patch or with variables set.

        None: as the script is, to compare it with.
        """
        settings = [parse(text) for text in asked.settings] if asked is not None else []
        variables = {each.name: each.value for each in settings if each.kind == "env"}
        diff = asked.patch if asked is not None else None
        return self._run_once({"mode": "compiled"}, seconds, timeout_s, variables, diff or "")

    def __enter__(self) -> Trials:
        return self

    def __exit__(self, *_error: object) -> None:
        if not self._options.keep_cache:
            shutil.rmtree(self._cache, ignore_errors=True)

    def _run_once(
        self,
        config: dict[str, object],
        seconds: float,
        timeout_s: float | None,
        variables: Mapping[str, str] = MappingProxyType({}),
        diff: str | None = None,
    ) -> tuple[Path, Ending]:
        """What the script prints is in ``stdout.txt`` and ``stderr.txt`` of the folder."""
        options, run = self._options, self._run
        self._target = target = self._target or find_target(options, self._console)
        raw = self._new_folder()
        prepared = for_pass({**os.environ, **variables}, target, raw, self._cache)
        config = child_config(options, target, run.folder, raw, sorted(prepared.ours)) | config
        config |= {"pass": _NAME, "trial_seconds": seconds, "timeout_s": timeout_s}
        write_child_config(raw, config)
        command = options.command(target.python)
        if diff is not None:
            patch = raw / "patch.diff"
            if diff:
                patch.write_text(diff, encoding="utf-8")
            ticks = [str(raw / TICKS), str(seconds)]
            command[1:1] = [_EDITED, str(patch) if diff else NONE, *ticks]
        stdin, _ = self._stdin.for_next_pass()
        with (raw / "stdout.txt").open("wb") as stdout, Path(os.devnull).open("wb") as nowhere:
            plan = Launch(
                command=command,
                variables=prepared.variables,
                raw=raw,
                timeout_s=timeout_s,
                stdin=stdin,
                stdout=stdout.fileno(),
                stderr=nowhere.fileno(),
            )
            outcome = launch(plan, self._console)
        return raw, outcome.ending

    def _new_folder(self) -> Path:
        """``raw/trials-1``, or the next that is not there yet."""
        number = 1
        while (folder := self._run.folder / "raw" / f"{_NAME}-{number}").exists():
            number += 1
        return folder
