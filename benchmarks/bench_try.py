"""Is a known cure tried without help, and accepted? Is nothing accepted on a healthy script?

Each script of ``evaluation/scripts`` runs under ``traceview try --json``. One that has an edited
twin, ``NAME.fixed.py``, has a known cure: some trial of a rule whose advice the twin follows should
be accepted. On a healthy script nothing should, unless the script gains by itself (``--bare``: it
runs bare with and without the recommended settings, in turns, in CPU time).

    python benchmarks/bench_try.py [NAME...] [--group healthy|cured] [--keep DIR] [--bare]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from evaluation_set import Script, percent, scripts, stored

CONFIGURED = Path(__file__).with_name("scripts") / "configured.py"
TURNS = 3


def attempt(script: Script, keep: Path, budget: str) -> dict[str, Any]:
    """What ``traceview try`` says of it; kept, so that a stopped benchmark goes on."""
    name = f"{script.name}.try.json"
    if found := stored(keep, name):
        return found
    words = [sys.executable, "-m", "traceview", "try", "--json", "--force", "--budget", budget]
    begin = time.perf_counter()
    done = subprocess.run(
        [*words, "-o", str(keep / script.name), str(script.main)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    (keep / f"{script.name}.stderr.txt").write_text(done.stderr)
    try:
        found = json.loads(done.stdout)
    except ValueError:
        found = {"trials": [], "not_tried": []}
    found |= {"seconds": time.perf_counter() - begin, "exit": done.returncode}
    (keep / name).write_text(json.dumps(found))
    return found


def bare(script: Script, settings: list[str], keep: Path) -> tuple[float, float] | None:
    """Ratios of CPU time, least and largest of some turns: as it is over with the settings."""
    name = f"{script.name}.bare.json"
    figures = stored(keep, name) or {"settings": settings, "ratios": []}
    if figures["settings"] != settings:
        figures = {"settings": settings, "ratios": []}
    while len(figures["ratios"]) < TURNS:
        sides = [_steps_cpu_s(script, given) for given in ([], settings)]
        if not all(sides):
            return None
        figures["ratios"].append(sides[0] / sides[1])
        (keep / name).write_text(json.dumps(figures))
    return min(figures["ratios"]), max(figures["ratios"])


def _steps_cpu_s(script: Script, settings: list[str]) -> float:
    """CPU seconds of the second half of a long run: a long one less one half as long."""
    count = script.few
    while True:
        short, long = (_cpu_s(script, settings, each) for each in (count, 2 * count))
        if long - short >= 3.0 or count > 1_000_000:
            return long - short
        count *= 2 if long - short > 0.3 else 8


def _cpu_s(script: Script, settings: list[str], count: int) -> float:
    arguments, variables = script.command(script.main, count)
    words = [sys.executable, str(CONFIGURED), json.dumps(settings), *arguments[1:]]
    with tempfile.TemporaryDirectory(prefix="try-") as cache:
        extra = {"TORCHINDUCTOR_CACHE_DIR": cache, "OMP_NUM_THREADS": "1"}
        before = os.times()
        subprocess.run(words, env={**os.environ, **variables, **extra}, capture_output=True)
        after = os.times()
    return (
        after.children_user
        + after.children_system
        - (before.children_user + before.children_system)
    )


def show(script: Script, found: dict[str, Any], confirmed: tuple[float, float] | None) -> None:
    print(f"{script.name} ({script.group}, {found['seconds']:.0f} s)", flush=True)
    for trial in found["trials"]:
        known = "*" if set(trial["rules"]) & script.cured_rules else " "
        ratio, interval = trial["ratio"], trial["interval"]
        timed = f"{ratio:.2f} ({interval[0]:.2f}-{interval[1]:.2f})" if ratio else ""
        saved = [trial["predicted_ms"], trial["measured_ms"]]
        saves = " ".join("-" if each is None else f"{each:.3f}" for each in saved)
        why = (trial["why"] or "")[:90]
        print(f"  {known} {trial['verdict']:<16} {timed:<20} {saves:<16} {trial['name']}  {why}")
    for rest in found["not_tried"]:
        print(f"    not tried: {rest['name'][:60]}: {rest['why'][:80]}")
    if confirmed:
        print(f"    bare: {confirmed[0]:.2f} to {confirmed[1]:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--group", choices=("healthy", "cured"))
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--budget", default="4m")
    parser.add_argument("--bare", action="store_true")
    asked = parser.parse_args()
    keep = asked.keep or Path(tempfile.mkdtemp(prefix="try-"))
    keep.mkdir(parents=True, exist_ok=True)
    cured: list[bool] = []
    tried: list[bool] = []
    healthy, false = 0, []
    seconds = []
    for script in scripts(asked.names, None, None):
        kind = "healthy" if script.group == "healthy" else "cured" if script.twin else None
        if kind is None or asked.group not in (None, kind):
            continue
        found = attempt(script, keep, asked.budget)
        best = found.get("recommended")
        confirmed = None
        if asked.bare and best and not best["patch"]:
            confirmed = bare(script, best["settings"], keep)
        show(script, found, confirmed)
        seconds.append(found["seconds"])
        if kind == "cured":
            offered = [t for t in found["trials"] if set(t["rules"]) & script.cured_rules]
            tried.append(bool(offered))
            cured.append(any(trial["verdict"] == "accepted" for trial in offered))
        healthy += kind == "healthy"
        if kind == "healthy" and best and not (confirmed and confirmed[0] > 1):
            false.append(script.name)
    if asked.group != "healthy":
        print(f"cures tried: {percent(tried)}, accepted: {percent(cured)}")
    if asked.group != "cured":
        print(f"healthy scripts: {healthy}, accepted and not confirmed: {false or 'none'}")
    print(f"median {statistics.median(seconds):.0f} s a script")


if __name__ == "__main__":
    main()
