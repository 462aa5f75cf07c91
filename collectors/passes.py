"""The passes over the target: cold always, then baseline or warm where they add something.

Each gets the user's own environment and what we need of torch. TORCH_LOGS grammar:
torch/_logging/_internal.py, ``_parse_log_settings``. An unknown name there is a ValueError at
``import torch``, so only names that the target's torch registers are added.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import traceview
from traceview.collectors.child.config import COMPARING_S
from traceview.collectors.child.secrets import masked_arguments, masked_variable
from traceview.collectors.launch import Launch, Outcome, Patience, launch
from traceview.collectors.options import CollectOptions, Console, Live
from traceview.collectors.output_folder import OTHER_DISK, output_folder
from traceview.collectors.probe import KERNEL_RANGES, PROVENANCE, Target, find_target
from traceview.collectors.streams import Stdin
from traceview.collectors.tlparse_report import write_reports
from traceview.errors import RunFolderError
from traceview.run import Manifest, PassName, PassRecord, Run, owners, write_whole

CHILD_FORMAT = 1
_NOT_KEPT = ("out", "args", "live")
_TOO_LARGE = "in eager the script runs out of memory"
# Steps past the one that crashed: enough to know that eager survives it.
_BEYOND_CRASH = 3
_OUTPUT = "what it prints then is in raw/baseline/stdout.txt."
# Signals that a program raises by its own fault; others were sent by somebody who wanted its end.
_FAULTS = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)
# output_code and the autotuner's choices are in the structured log or on stderr already.
# inductor_metrics is left to the user: it costs compile time (pytorch/pytorch pull request 153506).
LOGS = ("graph_breaks", "recompiles", "fusion", "schedule", "perf_hints", "cudagraphs")
_SETTINGS = re.compile(r"((\+|-)?[\w\.]+,\s*)*(\+|-)?[\w\.]+?")
#: Variables whose values torch's runnable graphs have (torch/_dynamo/debug_utils.py).
_TORCH_WRITES = re.compile("TORCH|DYNAMO|INDUCTOR|TRITON")
_UNSET = ("TORCH_LOGS_FORMAT", "TORCH_LOGS_TRACE_ID_FILTER")
_OURS_INSTEAD = ("TORCH_TRACE", "TORCH_LOGS_OUT", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")


@dataclass(frozen=True, slots=True)
class Pass:
    """What one pass asks of the collector's half in the target; the keys are child.json's.

    ``without_eager``: why eager steps are not measured, where they can't be.
    """

    name: PassName
    mode: str
    why: str | None = None
    stop_after_steps: int | None = None
    without_eager: str | None = None


def collect(options: CollectOptions, console: Console) -> Run:
    """Run the target and return the run folder, whatever the target's end was.

    TargetUnusable if it can't be run at all, RunFolderError if the folder can't be written.
    """
    target = find_target(options, console)
    with contextlib.ExitStack() as held, Live(options.live) as live:
        folder = output_folder(options, console, held)
        run = new_run(options, target, folder)
        try:
            collector = _Collector(options, target, run, console, live)
            cold = collector.run_pass(Pass("cold", "compiled" if options.no_baseline else "paired"))
            story = cold.story
            too_large = story.crashed and (story.crash_type or "").endswith("OutOfMemoryError")
            if not options.no_baseline and too_large and story.crash_stance == "eager":
                cold = collector.run_compiled_alone()
                options = replace(options, no_baseline=True)
            for again in _more_passes(options, cold):
                collector.run_pass(again)
        finally:
            if not options.keep_cache:
                shutil.rmtree(run.folder / "cache", ignore_errors=True)
        for record in run.manifest.passes if options.tlparse else ():
            console.progress("writing tlparse's report")
            run.manifest.notes += write_reports(run, record)
        console.progress(None)
        run.save()
        return run


def new_run(options: CollectOptions, target: Target, folder: Path) -> Run:
    """A run folder with its manifest, and nothing else yet."""
    kept = {name: value for name, value in asdict(options).items() if name not in _NOT_KEPT}
    manifest = Manifest(
        traceview=traceview.__version__,
        created_us=time.time() * 1e6,
        target=masked_arguments([options.target, *options.args]),
        target_kind=options.kind,
        cwd=str(Path.cwd()),
        python=target.python,
        options=kept,
        nproc=options.nproc,
        notes=list(target.notes),
    )
    return Run.create(folder, manifest)


class _Collector:
    """One run folder and what every pass into it has in common."""

    def __init__(
        self, options: CollectOptions, target: Target, run: Run, console: Console, live: Live
    ) -> None:
        self._options, self._target, self._run, self._live = options, target, run, live
        self._console, self._user = console, dict(os.environ)
        self._stdin = Stdin()

    def run_pass(self, asked: Pass) -> Outcome:
        """Run the target once; its record is in the manifest before it starts."""
        run, options = self._run, self._options
        record = PassRecord(name=asked.name, raw=f"raw/{asked.name}", why=asked.why)
        raw = run.raw(record)
        prepared = for_pass(self._user, self._target, raw, run.folder / "cache")
        stdin, note = self._stdin.for_next_pass()
        self._note(*prepared.notes, *([f"Pass {asked.name}: {note}"] if note else []))
        if asked.why:
            self._console.say(asked.why)
        elif asked.mode == "paired":
            self._console.say(
                "After warm-up, eager and compiled blocks alternate, so times that the script"
                " itself prints mix both."
            )
        command = options.command(self._target.python)
        record.command = masked_arguments(command)
        record.environment = {n: masked_variable(n, value) for n, value in prepared.ours.items()}
        record.started_us = time.time() * 1e6
        run.manifest.passes.append(record)
        self._write_child_config(raw, asked, sorted(prepared.ours))
        run.save()
        with contextlib.ExitStack() as stack:
            stdout = 2 if options.quiet_stdout_to_stderr else None
            if asked.name == "baseline":  # the script's output is on the screen already
                with contextlib.suppress(OSError):
                    stdout = stack.enter_context(owners(raw / "stdout.txt")).fileno()
            plan = Launch(
                command=command,
                variables=prepared.variables,
                raw=raw,
                timeout_s=options.timeout_s,
                stdin=stdin,
                stdout=stdout,
                patience=self._patience(asked),
                live=self._live,
            )
            began = {"event": "pass_began", "t": record.started_us, "pass": asked.name}
            self._live.write({**began, "run": str(run.folder), "why": asked.why})
            outcome = launch(plan, self._console)
        record.ending = ending = outcome.ending
        keys = {"pass": asked.name, "kind": ending.kind, "code": ending.code}
        self._live.write({"event": "pass_ended", "t": time.time() * 1e6, **keys})
        self._note(*outcome.notes)
        with contextlib.suppress(RunFolderError):
            run.save()  # on a full disk collect() tries again, when the caches have made room
        return outcome

    def run_compiled_alone(self) -> Outcome:
        """The first pass once more, without eager; what was recorded of it is replaced."""
        run = self._run
        shutil.rmtree(run.raw(run.manifest.passes.pop()), ignore_errors=True)
        why = "In eager the script runs out of memory, so it runs again, compiled only."
        return self.run_pass(Pass("cold", "compiled", why, without_eager=_TOO_LARGE))

    def _patience(self, asked: Pass) -> Patience:
        """A script that is stopped compares first, and looks for the operator."""
        usual, options = Patience(), self._options
        if not (options.compare_outputs and asked.name == "cold"):
            return usual
        more_s = 2 * COMPARING_S + 1.25 * options.bisect_s  # a compile that has begun goes on
        return replace(usual, stopping_s=usual.stopping_s + more_s)

    def _note(self, *notes: str) -> None:
        """Keep what is new in the manifest."""
        known = self._run.manifest.notes
        known += [note for note in dict.fromkeys(notes) if note not in known]

    def _write_child_config(self, raw: Path, asked: Pass, variables: list[str]) -> None:
        options, warm = self._options, asked.name == "warm"
        config = child_config(options, self._target, self._run.folder, raw, variables) | {
            "pass": asked.name,
            "mode": asked.mode,
            "without_eager": asked.without_eager,
            "blocks": 1 if warm else options.blocks,
            "run_to_end": options.lets_go_on and asked.name == "cold",
            "stop_after_steps": asked.stop_after_steps or options.stop_after_steps,
            "profile": options.profile and not warm,
            "compare_outputs": options.compare_outputs and asked.name == "cold",
            "bisect_s": options.bisect_s,
            "record_mb": options.record_mb if asked.name == "cold" else 0,
            "timeout_s": options.timeout_s,
        }
        write_child_config(raw, config)


def child_config(
    options: CollectOptions, target: Target, folder: Path, raw: Path, variables: list[str]
) -> dict[str, Any]:
    """What every pass asks of the child; ``folder`` is the run's, ``raw`` the pass's in it."""
    return {
        "format": CHILD_FORMAT,
        "run": str(folder),
        "raw": str(raw),
        "nproc": options.nproc,
        "steps": options.steps,
        "after_steps": options.after_steps,
        "compile_target": options.compile_target,
        "compile_options": dict(options.compile_options),
        "profile": False,
        "pythonpath": os.environ.get("PYTHONPATH"),
        "user_logs": user_logs(os.environ.get("TORCH_LOGS")),
        "torch_logs": os.environ.get("TORCH_LOGS"),
        "variables": variables,
        "script_root": target.script_root,
    }


def write_child_config(raw: Path, config: Mapping[str, Any]) -> None:
    """``child.json``, and the folders next to it; RunFolderError where they can't be made."""
    try:
        for folder in (raw / "structured", raw / "profile"):
            folder.mkdir(parents=True, exist_ok=True)
        write_whole(raw / "child.json", json.dumps(config, indent=1) + "\n")
    except OSError as error:
        fact = f"Can't write to the run folder {raw} ({error.strerror})."
        raise RunFolderError(fact, OTHER_DISK, slug="unwritable") from error


def _more_passes(options: CollectOptions, cold: Outcome) -> list[Pass]:
    """What the cold pass left to be found out.

    All-eager: after a crash under compile, or where no eager block was measured. Then ``--warm``.
    """
    ending, story = cold.ending, cold.story
    if ending.kind in ("timeout", "interrupted") or not story.called:
        return []
    passes = []
    faulted = ending.signal in _FAULTS
    sent_away = ending.kind == "signal" and not faulted
    if not (options.no_baseline or story.disabled or sent_away):
        stance = story.crash_stance if story.crashed else story.stance
        if (story.crashed or faulted) and stance == "compiled":
            why = (
                "The script crashed while compiled, so it runs again in eager for comparison; "
                + _OUTPUT
            )
            passes.append(Pass("baseline", "eager", why, (story.last_step or 0) + _BEYOND_CRASH))
        elif not story.crashed and "eager" not in story.stances_measured:
            why = (
                "The script ended before eager steps were measured, so it runs again in eager; "
                + _OUTPUT
            )
            passes.append(Pass("baseline", "eager", why))
    succeeded = ending.kind == "stopped" or (ending.kind == "exit" and ending.code == 0)
    if options.warm and succeeded:
        why = "The script runs again with a warm cache (--warm)."
        passes.append(Pass("warm", "compiled", why))
    return passes


@dataclass(frozen=True, slots=True)
class Environment:
    """``variables`` for the child, of them ``ours`` (as set), and what the user should know."""

    variables: dict[str, str]
    ours: dict[str, str]
    notes: tuple[str, ...]


def for_pass(user: Mapping[str, str], target: Target, raw: Path, cache: Path) -> Environment:
    """The environment of the pass whose raw folder is ``raw``, with caches under ``cache``."""
    # The bootstrap folder first: its sitecustomize takes itself off again (child/bootstrap). An
    # empty entry would be the working directory, so nothing is joined where there was nothing.
    bootstrap = str(Path(__file__).parent.resolve() / "child" / "bootstrap")
    own_path = user.get("PYTHONPATH")
    ours = {
        "TORCH_TRACE": str(raw / "structured"),
        "TORCH_LOGS_OUT": str(raw / "torch_logs.txt"),
        "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"),
        "TRITON_CACHE_DIR": str(cache / "triton"),
        "TRACEVIEW_CHILD_CONFIG": str(raw / "child.json"),
        "PYTHONPATH": f"{bootstrap}:{own_path}" if own_path else bootstrap,
    }
    if "TEARDOWN_CUPTI" not in user:  # see cupti_is_torn_down in child/window.py
        ours["TEARDOWN_CUPTI"] = "1"
    if "TORCH_DTRACE" in user:  # it would win over TORCH_TRACE; kept on, in our folder
        ours["TORCH_DTRACE"] = ours["TORCH_TRACE"]
    logs = merged_logs(user.get("TORCH_LOGS"), target.log_names)
    if logs:
        ours["TORCH_LOGS"] = logs
    # What only adds to torch's records: a record per kernel, with its lines. A named range per C++
    # kernel call makes the C++ compiler slow (child/marks.py): only where C++ calls the kernels.
    by_cpp = user.get("TORCHINDUCTOR_CPP_WRAPPER") == "1"
    switches = frozenset({PROVENANCE, KERNEL_RANGES} if by_cpp else {PROVENANCE})
    ours.update({name: "1" for name in switches & target.switches if name not in user})
    variables = {name: value for name, value in user.items() if name not in _UNSET} | ours
    notes = [
        f"{name}={masked_variable(name, user[name])} in your environment was replaced with a path"
        " in the run folder."
        for name in _OURS_INSTEAD
        if name in user
    ]
    notes += [
        f"{name} in your environment was ignored, because it changes the format of the logs."
        for name in _UNSET
        if name in user
    ]
    told = [
        name
        for name, value in sorted(user.items())
        if value and _TORCH_WRITES.search(name) and masked_variable(name, value) != value
    ]
    if told:
        notes.append(
            f"torch writes the value of {', '.join(told)} into its own logs: remove raw and tlparse"
            " from the run folder before you share it."
        )
    return Environment(variables, ours, tuple(notes))


def merged_logs(own: str | None, known: frozenset[str]) -> str:
    """The user's TORCH_LOGS and the names of ours that this torch knows and they did not name.

    What torch itself refuses, or answers with its help text, is passed on alone and unchanged.
    """
    if (own and _SETTINGS.fullmatch(own) is None) or own in ("help", "+help"):
        return own or ""
    named = {token.lstrip("+-") for token in user_logs(own)}
    added = [name for name in LOGS if name in known and name not in named]
    return ",".join([*([own] if own else []), *added])


def user_logs(own: str | None) -> list[str]:
    """What the user's TORCH_LOGS asks for: names with their level, as in ``+dynamo``."""
    return [token.strip() for token in (own or "").split(",") if token.strip()]
