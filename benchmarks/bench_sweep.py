"""Does ``traceview sweep`` put torch.compile's modes in the order that bare runs put them in?

Each script of ``evaluation/gpu`` runs bare in each mode, in turns, one process each, and once under
``traceview sweep --modes``. A bare step is the ``step_ms`` that the script prints of its second
half, or the wall clock after the last compile of a long run less a short one. Two modes whose bare
runs overlap, or are within 3 %, have no order; one in which the bare script fails comes behind the
others, and the sweep has to say that it fails.

    python benchmarks/bench_sweep.py [NAME...] [--modes LIST] [--turns N] [--keep DIR]
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from math import inf, nan
from pathlib import Path
from typing import Any

from evaluation_set import Script, percent, scripts, stored

SCRIPTS = Path(__file__).with_name("scripts")
MODES = "default,reduce-overhead,max-autotune-no-cudagraphs,max-autotune"
LONG_S = 3.0  # of steps in a bare run
ALIKE = 1.03  # bare runs repeat no better, whatever their number


def swept(script: Script, modes: list[str], keep: Path) -> dict[str, Any]:
    """What ``traceview sweep`` says of it; kept, so that a stopped benchmark goes on."""
    if found := stored(keep, "sweep.json"):
        return found
    words = [sys.executable, "-m", "traceview", "sweep", "--json", "--force", "--budget", "8m"]
    words += ["--modes", ",".join(modes), "-o", str(keep / "run"), str(script.main)]
    with (keep / "sweep.txt").open("w") as said:
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=said, text=True)
    (keep / "sweep.json").write_text(done.stdout)
    return stored(keep, "sweep.json")


def bare(
    script: Script, trials: dict[str, dict[str, Any]], turns: int, keep: Path
) -> dict[str, list[float]]:
    """Milliseconds per step of each turn, by mode; how many steps are enough, the sweep says."""
    ms = stored(keep, "bare.json") or {mode: [] for mode in trials}
    for turn in range(turns):
        for mode, trial in trials.items():
            if len(ms[mode]) <= turn:
                count = max(script.few, int(1e3 * LONG_S / (trial["trial_ms"] or LONG_S)))
                long, own = _after_s(script, mode, count, keep)
                taken = own
                if own is None:
                    # Kernels are tuned in their first call, after the last compile: two lengths of
                    # the script, run with filled caches, hold that alike.
                    short = _after_s(script, mode, count // 4, keep)[0]
                    if not ms[mode]:
                        long = _after_s(script, mode, count, keep)[0]
                    taken = 1e3 * (long - short) / (count - count // 4)
                ms[mode].append(taken if taken == taken else inf)
                (keep / "bare.json").write_text(json.dumps(ms))
    return ms


def _after_s(script: Script, mode: str, count: int, keep: Path) -> tuple[float, float | None]:
    """Seconds after the last compile of a run of ``count`` steps, NaN if the script fails; and its
    own milliseconds per step, where it prints them.
    """
    arguments, variables = script.command(script.main, count)
    out = keep / "clocked.json"
    words = [sys.executable, str(SCRIPTS / "clocked.py"), str(out)]
    words += [str(SCRIPTS / "configured.py"), json.dumps([f"mode={mode}"]), *arguments[1:]]
    environment = os.environ | variables | {"TORCHINDUCTOR_CACHE_DIR": str(keep / "cache")}
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    if done.returncode:
        return nan, nan
    own = re.findall(r"^step_ms=([\d.]+)$", done.stdout, re.MULTILINE)
    return float(json.loads(out.read_text())["after_s"]), float(own[-1]) if own else None


def compared(
    ms: dict[str, list[float]], trials: dict[str, dict[str, Any]]
) -> tuple[list[bool], list[str]]:
    """Each pair of modes that bare runs tell apart: does the sweep put it in the same order?"""
    agree, unlike = [], []
    for one, other in itertools.combinations(ms, 2):
        low, high = sorted((one, other), key=lambda mode: statistics.median(ms[mode]))
        if max(ms[low]) * ALIKE >= min(ms[high]):
            continue
        figures = [trials[mode].get("ratio") or 0.0 for mode in (low, high)]
        agree.append(figures[0] > figures[1])
        if not agree[-1]:
            unlike.append(f"{low} before {high}")
    return agree, unlike


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--modes", default=MODES)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--keep", type=Path)
    asked = parser.parse_args()
    modes = asked.modes.split(",")
    keep = asked.keep or Path(tempfile.mkdtemp(prefix="sweep-"))
    same: list[bool] = []
    for script in scripts(asked.names, None, None, gpu=True):
        folder = keep / script.name
        folder.mkdir(parents=True, exist_ok=True)
        found = swept(script, modes, folder)
        by_mode = {
            setting.partition("=")[2]: trial
            for trial in found.get("trials", [])
            for setting in trial["settings"]
        }
        trials = {mode: by_mode.get(mode, {"trial_ms": None}) for mode in modes}
        ms = bare(script, trials, asked.turns, folder)
        agree, unlike = compared(ms, trials)
        same.append(not unlike)
        print(f"{script.name}: pairs in the same order {percent(agree)} {'; '.join(unlike)}")
        for mode in sorted(modes, key=lambda mode: statistics.median(ms[mode])):
            trial = trials[mode]
            turns = ", ".join(f"{each:.3f}" for each in ms[mode])
            ratio, interval = trial.get("ratio"), trial.get("interval")
            said = f"{ratio:.3f} ({interval[0]:.3f}-{interval[1]:.3f})" if ratio else "-"
            print(f"  {mode:<28} bare {turns} ms; sweep {trial.get('trial_ms')} ms, {said}")
    print(f"programs in the same order: {percent(same)}")


if __name__ == "__main__":
    main()
