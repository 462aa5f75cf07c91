"""Starts a script under the collector's child half, as the parent does, with a hand-made config.

Most scripts run in a fork of a process that has imported torch (see ``torch_server.py``); a
``fresh`` one, and one that is given a command, in an interpreter of its own.
"""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

from recordings import QUICK_STARTS
from torch_forks import Fork

CHILD = Path(__file__).resolve().parents[2] / "collectors" / "child"


class Result:
    """What one run left behind."""

    def __init__(self, done, raw):
        self.returncode = done.returncode
        self.out, self.err = done.stdout, done.stderr
        self.raw = raw
        self.files = sorted(raw.glob("events-*.jsonl"))
        lines = [line for file in self.files for line in file.read_text().splitlines()]
        self.events = [json.loads(line) for line in lines]

    def of(self, kind):
        return [event for event in self.events if event["event"] == kind]

    def rows(self, kind):
        return [(event, row) for event in self.of(kind) for row in event["rows"]]


def write_script(folder: Path, text: str, name: str = "script.py") -> Path:
    path = folder / name
    path.write_text(dedent(text))
    return path


def environment(**extra: str) -> dict[str, str]:
    drop = ("TORCH", "PYTHONPATH", "TRACEVIEW", "COV_")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(drop)}
    return {**kept, **QUICK_STARTS, "OMP_NUM_THREADS": "1", **extra}


def run_bare(script: Path, *args: str, stdin: str = "", fresh: bool = False):
    if not fresh:
        return _forked(script, args, stdin, script.parent, environment())
    return _started([sys.executable, str(script), *args], stdin, script.parent, environment())


def run_child(
    script, *args, stdin="", command=None, cwd=None, env=None, fresh=False, **config
) -> Result:
    folder = script.parent / "run"
    raw = folder / "raw" / "cold"
    raw.mkdir(parents=True)
    settings = {
        "format": 1, "run": str(folder), "raw": str(raw), "pass": "cold", "mode": "paired",
        "nproc": 1, "steps": None, "blocks": 2, "run_to_end": False, "stop_after_steps": None,
        "profile": False, "pythonpath": None, "user_logs": [], "script_root": str(script.parent),
        **config,
    }  # fmt: skip
    (raw / "child.json").write_text(json.dumps(settings))
    path = os.pathsep.join(filter(None, [str(CHILD / "bootstrap"), settings["pythonpath"]]))
    extra = {"PYTHONPATH": path, "TRACEVIEW_CHILD_CONFIG": str(raw / "child.json"), **(env or {})}
    cwd = cwd or script.parent
    if fresh or command:
        words = command or [sys.executable, str(script), *args]
        return Result(_started(words, stdin, cwd, environment(**extra)), raw)
    return Result(_forked(script, args, stdin, cwd, environment(**extra)), raw)


def _started(words, stdin, cwd, env):
    return subprocess.run(
        words, input=stdin, capture_output=True, text=True, timeout=180, cwd=cwd, env=env,
        check=False,
    )  # fmt: skip


def _forked(script, args, stdin, cwd, env):
    """The same for a script, in a fork of a process that has imported torch."""
    given, out, err = (script.parent / f"{script.stem}-{os.urandom(4).hex()}" for _ in range(3))
    given.write_text(stdin)
    fork = Fork(script, args, cwd=cwd, env=env, given=given, out=out, err=err)
    if fork.wait(180) is None:
        os.kill(fork.pid, signal.SIGKILL)
    done = subprocess.CompletedProcess(
        [script, *args], fork.wait(), out.read_text(), err.read_text()
    )
    for path in (given, out, err):
        path.unlink()
    return done


def names_in(run: Result, window: dict) -> list[str]:
    """Names of the events of a ``profile`` event's trace."""
    with gzip.open(run.raw / window["file"]) as file:
        return [event.get("name", "") for event in json.load(file)["traceEvents"]]
