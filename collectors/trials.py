"""Trials: the target runs once more, with remedies in turns with what the script does by itself."""

from __future__ import annotations

import os
import re
import shutil
import zlib
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from traceview.collectors.child.edited import NONE
from traceview.collectors.child.settings import parse
from traceview.collectors.launch import Launch, launch
from traceview.collectors.options import CollectOptions, Console
from traceview.collectors.output_folder import output_folder
from traceview.collectors.passes import child_config, for_pass, new_run, write_child_config
from traceview.collectors.probe import Target, find_target
from traceview.collectors.streams import Stdin
from traceview.run import TICKS, Ending, Run, owners, write_whole
from traceview.words.names import signal_name

_NAME = "trials"
#: Variables of ours without which nothing is recorded, or the user's own caches would be used.
_WITHOUT_LOGS = (
    *("TRACEVIEW_CHILD_CONFIG", "PYTHONPATH", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"),
)
_EDITED = str(Path(__file__).resolve().parent / "child" / "edited.py")


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be tried: settings (`traceview.collectors.child.settings`), or a patch.

    ``patch`` is a unified diff of one of the user's files.
    """

    name: str
    settings: tuple[str, ...] = ()
    patch: str | None = None


@dataclass(frozen=True, slots=True)
class How:
    """``own_caches``: each trial compiles with empty ones, and then once more with what they hold.

    ``keep_debug``: each leaves torch's debug folders in the raw folder. ``arguments`` follow the
    script's own.
    """

    own_caches: bool = False
    keep_debug: bool = False
    arguments: tuple[str, ...] = ()


def failure(ending: Ending, raw: Path) -> str | None:
    """How the process with the raw folder ``raw`` failed, with its last words; None: it did not."""
    if ending.kind == "signal":
        return f"the process ended with {signal_name(ending.signal)}"
    if ending.kind != "exit" or not ending.code:
        return None
    with suppress(OSError):
        lines = (raw / "stderr.txt").read_text(encoding="utf-8", errors="replace").split("\n")
        if last := next((line.strip() for line in reversed(lines) if line.strip()), None):
            return f"exit code {ending.code}: {last[:300]}"
    return f"the script ended with exit code {ending.code}"


class Trials:
    """Runs the target for trials, as often as asked; all processes share the run's compile cache.

    The caches are removed at the end (a context manager), unless they are to be kept.
    """

    def __init__(
        self, options: CollectOptions, run: Run, console: Console, target: Target | None = None
    ) -> None:
        self._options, self._run, self._console = options, run, console
        self._target = target
        self._stdin = Stdin()
        self._cache = run.folder / "cache"

    def carry_out(
        self,
        asked: Sequence[Asked],
        *,
        seconds: float,
        baseline: Literal["eager", "compiled"] = "compiled",
        timeout_s: float | None = None,
        how: How = How(),
    ) -> tuple[Path, Ending]:
        """One process for all; its folder, and how it ended. ``seconds`` in each one's blocks."""
        raw = self._new_folder()
        caches = self._cache / raw.name
        config: dict[str, object] = {
            "mode": "trials",
            "trials": [asdict(each) for each in asked],
            "trial_baseline": baseline,
            "trial_caches": str(caches) if how.own_caches else None,
            "trial_debug": str(raw / "debug") if how.keep_debug else None,
        }
        try:
            return self._run_once(raw, config, seconds, timeout_s, arguments=how.arguments)
        finally:
            if not self._options.keep_cache:
                shutil.rmtree(caches, ignore_errors=True)

    def carry_out_apart(
        self,
        asked: Asked | None,
        *,
        seconds: float,
        timeout_s: float | None = None,
        eager: bool = False,
        checked: bool = False,
    ) -> tuple[Path, Ending]:
        """A process of its own, compiled all the way, with a patch or with settings in force.

        None: as the script is, to compare it with, or all in ``eager``. ``checked``: at its end,
        results of compiled code are compared with eager's.
        """
        settings = [parse(text) for text in asked.settings] if asked is not None else []
        variables = {each.name: each.value for each in settings if each.kind == "env"}
        diff = (asked.patch if asked is not None else None) or ""
        # A variable may change generated code, and torch's caches may not ask for it.
        own = re.sub(r"[^\w.=-]", "_", "-".join(f"{n}={v}" for n, v in variables.items()))
        cache = self._cache / own[:80] if variables else None
        if "mutates_args" in diff:  # what an operator declares they don't ask for either
            cache = self._cache / f"declared-{zlib.crc32(diff.encode()):08x}"
        raw = self._new_folder()
        config: dict[str, object] = {
            "mode": "eager" if eager else "compiled",
            "check_results": checked and not eager,
        }
        if asked is not None and len(settings) > len(variables):
            config |= {"trials": [asdict(replace(asked, patch=None))], "throughout": True}
        return self._run_once(raw, config, seconds, timeout_s, variables, diff, cache=cache)

    def serve(
        self,
        name: str,
        *,
        mode: Literal["eager", "compiled"],
        calls: int,
        seconds: float,
        timeout_s: float | None = None,
    ) -> tuple[Path, Ending]:
        """A process in which every call is recorded, ``calls`` in ``seconds`` at most.

        Its caches are apart from the run's, and empty unless another one has served before it.
        torch writes no logs.
        """
        config: dict[str, object] = {"mode": mode, "serve_calls": calls, "serve_seconds": seconds}
        raw, cache = self._new_folder(name), self._cache / "serving"
        return self._run_once(raw, config, 0.0, timeout_s, cache=cache, logs=False)

    def step(self, stance: str, steps: int) -> Ending:
        """A process that makes N optimizer steps, whose losses and weights are recorded."""
        config: dict[str, object] = {
            "mode": "compiled" if stance == "compiled" else "eager",
            "nudged": stance == "nudged",
            "record_steps": steps,
            "record_mb": self._options.record_mb,
        }
        raw = self._new_folder(f"steps-{stance}")
        return self._run_once(raw, config, 0.0, self._options.timeout_s, logs=False)[1]

    def __enter__(self) -> Trials:
        return self

    def __exit__(self, *_error: object) -> None:
        if not self._options.keep_cache:
            shutil.rmtree(self._cache, ignore_errors=True)

    def _run_once(
        self,
        raw: Path,
        config: dict[str, object],
        seconds: float,
        timeout_s: float | None,
        variables: Mapping[str, str] = MappingProxyType({}),
        diff: str | None = None,
        *,
        arguments: tuple[str, ...] = (),
        cache: Path | None = None,
        logs: bool = True,
    ) -> tuple[Path, Ending]:
        """What the script prints is in ``stdout.txt`` and ``stderr.txt`` of the folder."""
        options = replace(self._options, args=(*self._options.args, *arguments))
        run = self._run
        self._target = target = self._target or find_target(options, self._console)
        own = {**os.environ, **variables}
        prepared = for_pass(own, target, raw, cache or self._cache)
        ours = {n: v for n, v in prepared.ours.items() if logs or n in _WITHOUT_LOGS}
        config = child_config(options, target, run.folder, raw, sorted(ours)) | config
        config |= {"pass": _NAME, "trial_seconds": seconds, "timeout_s": timeout_s}
        write_child_config(raw, config)
        command = options.command(target.python)
        if diff is not None:
            patch = raw / "patch.diff"
            if diff:
                write_whole(patch, diff)
            ticks = [str(raw / TICKS), str(seconds)]
            command[1:1] = [_EDITED, str(patch) if diff else NONE, *ticks]
        stdin, _ = self._stdin.for_next_pass()
        with owners(raw / "stdout.txt") as stdout, Path(os.devnull).open("wb") as nowhere:
            plan = Launch(
                command=command,
                variables=prepared.variables if logs else own | ours,
                raw=raw,
                timeout_s=timeout_s,
                stdin=stdin,
                stdout=stdout.fileno(),
                stderr=nowhere.fileno(),
            )
            outcome = launch(plan, self._console)
        return raw, outcome.ending

    def _new_folder(self, name: str = _NAME) -> Path:
        """``raw/trials-1``, or the next that is not there yet."""
        number = 1
        while (folder := self._run.folder / "raw" / f"{name}-{number}").exists():
            number += 1
        return folder


#: Processes that make training steps, and what is printed before each.
STEPPING = {
    "compiled": "It trains compiled.",
    "eager": "It trains in eager.",
    "nudged": "It trains in eager, with weights a rounding away.",
}


def record_steps(options: CollectOptions, console: Console, steps: int) -> tuple[Run, Ending]:
    """N optimizer steps in each of these; the new run folder, and how the last one ended."""
    target = find_target(options, console)
    with ExitStack() as held:
        run = new_run(options, target, output_folder(options, console, held))
        trials = held.enter_context(Trials(options, run, console, target))
        for stance, said in STEPPING.items():
            console.say(said)
            ending = trials.step(stance, steps)
            if not ending.is_well:
                break
        return run, ending
