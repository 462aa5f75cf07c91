"""A script as it is, with a remedy, and edited by hand: bare, in turns, in CPU time.

Of each side the CPU seconds of the second half of a long run count: a long run less one half as
long. With one thread that is the steps' own time, which neighbours disturb little.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation_set import Script, stored

from traceview.collectors.child.patches import applied, file_of
from traceview.collectors.child.settings import parse

CONFIGURED = Path(__file__).with_name("scripts") / "configured.py"
PINNED = "import os, sys; os.sched_setaffinity(0, {}); os.execv(sys.argv[1], sys.argv[1:])"
TURNS = 3
ENOUGH_S = 3.0
LONGEST_S = 240.0
Cores = tuple[int, ...]


@dataclass(frozen=True)
class Side:
    """What runs: the script or its twin, with settings and a patch."""

    twin: bool = False
    settings: tuple[str, ...] = ()
    patch: str | None = None


def pinned(words: Sequence[str], cores: Cores) -> list[str]:
    """``words`` on these cores only; no cores: on any."""
    if not cores:
        return list(words)
    return [sys.executable, "-c", PINNED.format(set(cores)), *words]


def kept(path: Path, data: Mapping[str, Any]) -> None:
    """Write it whole or not at all: whoever is stopped goes on from what there is."""
    scratch = path.with_suffix(".part")
    scratch.write_text(json.dumps(data))
    scratch.replace(path)


def turns(
    script: Script, sides: Mapping[str, Side], keep: Path, cores: Cores
) -> dict[str, list[float]]:
    """CPU seconds of one unit of the script's length, of each side and turn; kept as they come.

    A side that fails has none.
    """
    name = f"{script.name}.bare.json"
    found = {
        label: known
        if (known := stored(keep, name).get(label, {})).get("what") == repr(side)
        else {"what": repr(side), "count": script.few, "seconds": []}
        for label, side in sides.items()
    }
    with tempfile.TemporaryDirectory(prefix="bare-") as scratch:
        runs = {
            label: _Run(script, side, Path(scratch, label), cores) for label, side in sides.items()
        }
        for turn in range(TURNS):
            for label, run in runs.items():
                state = found[label]
                if len(state["seconds"]) <= turn and state["count"]:
                    taken = run.of_one(state["count"])
                    state["count"] = taken and taken[1]
                    state["seconds"] += [taken[0]] if taken else []
                    kept(keep / name, found)
    return {label: state["seconds"] for label, state in found.items()}


def ratios(found: Mapping[str, Sequence[float]], label: str) -> tuple[float, float] | None:
    """The least and the largest of the turns' ratios: the script as it is over that side."""
    pairs = list(zip(found.get("script", ()), found.get(label, ()), strict=False))
    each = [before / after for before, after in pairs]
    return (min(each), max(each)) if len(each) == TURNS else None


class _Run:
    """One side, with a compile cache of its own."""

    def __init__(self, script: Script, side: Side, scratch: Path, cores: Cores) -> None:
        self._script, self._cores, self._cache = script, cores, scratch / "cache"
        scratch.mkdir()
        settings = [parse(text) for text in side.settings]
        self._variables = {each.name: str(each.value) for each in settings if each.kind == "env"}
        self._settings = [
            text for text, each in zip(side.settings, settings, strict=True) if each.kind != "env"
        ]
        self._path = script.main if not side.twin else script.twin or script.main
        if side.patch is not None:
            self._path = _patched(self._path, side.patch, scratch / "copy")

    def of_one(self, count: int) -> tuple[float, int] | None:
        """CPU seconds of one unit, and of how many that is known; None: it fails."""
        self._cpu_s(count)  # fills the caches
        while True:
            short, long = self._cpu_s(count), self._cpu_s(2 * count)
            if short is None or long is None:
                return None
            if long - short >= ENOUGH_S or count > 10_000_000:
                return max(long - short, 1e-9) / count, count
            count *= 2 if long - short > ENOUGH_S / 4 else 4

    def _cpu_s(self, count: int) -> float | None:
        arguments, variables = self._script.command(self._path, count)
        words = [arguments[0], str(CONFIGURED), json.dumps(self._settings), *arguments[1:]]
        ours = {"TORCHINDUCTOR_CACHE_DIR": str(self._cache), "OMP_NUM_THREADS": "1"}
        process = subprocess.Popen(
            pinned(words, self._cores),
            env={**os.environ, **variables, **self._variables, **ours},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        return used.ru_utime + used.ru_stime if process.returncode == 0 else None


def _patched(main: Path, patch: str, copy: Path) -> Path:
    """The main file of a copy of the script that has the patch."""
    whole = main.name == "main.py"
    if whole:
        shutil.copytree(main.parent, copy)
    else:
        copy.mkdir()
        shutil.copy(main, copy)
    file = copy / Path(file_of(patch)).absolute().relative_to(main.parent)
    file.write_text(applied(file.read_text(encoding="utf-8"), patch), encoding="utf-8")
    return copy / main.name
