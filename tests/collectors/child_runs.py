"""Starts a script under the collector's child half, as the parent does, with a hand-made config."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

from recordings import QUICK_STARTS

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


def run_bare(script: Path, *args: str, stdin: str = "", cwd: Path | None = None):
    command = [sys.executable, str(script), *args]
    return subprocess.run(
        command, input=stdin, capture_output=True, text=True, timeout=120,
        cwd=cwd or script.parent, env=environment(), check=False,
    )  # fmt: skip


def run_child(script, *args, stdin="", command=None, cwd=None, env=None, **config) -> Result:
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
    done = subprocess.run(
        command or [sys.executable, str(script), *args], input=stdin, capture_output=True,
        text=True, timeout=180, cwd=cwd or script.parent, env=environment(**extra), check=False,
    )  # fmt: skip
    return Result(done, raw)


def names_in(run: Result, window: dict) -> list[str]:
    """Names of the events of a ``profile`` event's trace."""
    with gzip.open(run.raw / window["file"]) as file:
        return [event.get("name", "") for event in json.load(file)["traceEvents"]]
