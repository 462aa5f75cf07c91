"""Is a known cure tried without help, and accepted? Is nothing accepted on a healthy script?

Each script of ``evaluation/scripts`` runs under ``traceview try --json``. One that has an edited
twin, ``NAME.fixed.py``, has a known cure: some trial of a rule whose advice the twin follows should
be accepted. On a healthy script nothing should, unless the script gains by itself (``--bare``: it
runs bare with and without what is recommended, in turns, in CPU time). ``--hand``: the twin runs
bare as well, beside the script. ``--scores``: what findings predicted, beside what was measured, by
rule, of all results in the folder; nothing is run.

    python benchmarks/bench_try.py [NAME...] [--group healthy|cured] [--keep DIR] [--bare] [--hand]
        [--jobs N] [--scores] [--gpu]

With ``--jobs`` each job has two cores of its own. ``--gpu``: the scripts of ``evaluation/gpu``, on
a machine with one; CPU time says little of those, so nothing runs bare. Results are kept as they
come: the same command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from bare_turns import Cores, Side, kept, pinned, ratios, turns
from evaluation_set import Script, percent, scripts, stored

CORES_EACH = 2
#: A median error above this part of the prediction takes the word "measured" from a rule.
CLOSE = 0.25
#: Trials whose interval is wider than this say too little of a gain to judge a prediction by.
WIDE = 1.25
NEAR = 0.05
#: Fewer trials say too little of a rule.
ENOUGH = 3
Ratios = tuple[float, float] | None


def attempt(script: Script, keep: Path, budget: str, cores: Cores) -> dict[str, Any]:
    """What ``traceview try`` says of it."""
    name = f"{script.name}.try.json"
    if found := stored(keep, name):
        return found
    words = [sys.executable, "-m", "traceview", "try", "--json", "--force", "--budget", budget]
    begin = time.perf_counter()
    done = subprocess.run(
        pinned([*words, "-o", str(keep / script.name), str(script.main)], cores),
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
    found["costs"] = costs(keep / script.name)
    kept(keep / name, found)
    return found


def costs(run: Path) -> list[float]:
    """What trials inside a process took, as so many times their compiling and their blocks."""
    found = []
    for path in run.glob("raw/trials-*/events-*.jsonl"):
        began, blocks_ms = dict[str, float](), defaultdict[str, float](float)
        for line in path.read_text().splitlines():
            event = json.loads(line)
            if event.get("event") == "trial_begin":
                began.setdefault(event["name"], event["t"])
            elif event.get("event") == "block" and event.get("trial"):
                blocks_ms[event["trial"]] += event["duration_ms"]
            elif event.get("event") == "trial" and blocks_ms[event["name"]]:
                name, compile_s = event["name"], event["compile_s"]
                needed_s = compile_s + event.get("warm_compile_s", 0.0) + blocks_ms[name] / 1e3
                found.append((event["t"] - began[name]) / 1e6 / needed_s)
    return found


def carried_out(
    script: Script, asked: argparse.Namespace, keep: Path, cores: Cores
) -> tuple[dict[str, Any], Ratios, Ratios]:
    """What it says; bare ratios, least and largest, of what it recommends and of the twin."""
    found = attempt(script, keep, asked.budget, cores)
    best = found.get("recommended")
    sides = {"script": Side()}
    if asked.bare and best:
        sides["remedy"] = Side(settings=tuple(best["settings"]), patch=best["patch"])
    if asked.hand and script.twin:
        sides["twin"] = Side(twin=True)
    bare = turns(script, sides, keep, cores) if len(sides) > 1 else {}
    return found, ratios(bare, "remedy"), ratios(bare, "twin")


def show(script: Script, found: dict[str, Any], confirmed: Ratios, hand: Ratios) -> None:
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
    best = found.get("recommended")
    if best:
        print(f"    recommended: {best['ratio']:.2f} {', '.join(best['trials'])}")
    for label, bare in (("bare", confirmed), ("by hand", hand)):
        if bare:
            print(f"    {label}: {bare[0]:.2f} to {bare[1]:.2f}")


def scores(keep: Path) -> Iterator[str]:
    """A Markdown table: what rules predicted a step to save, and what it saved.

    Then the entries of ``traceview.rules.registry.OFF``, of rules with enough trials.
    """
    off = []
    rows: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for path in sorted(keep.glob("*.try.json")):
        for trial in json.loads(path.read_text())["trials"]:
            said, saved, interval = (
                trial[key] for key in ("predicted_ms", "measured_ms", "interval")
            )
            sure = interval and interval[1] <= WIDE * interval[0]
            if trial["rule"] and said and saved is not None and sure:
                rows[trial["rule"]].append((said, saved))
    yield "| rule | trials | predicted, median ms | measured, median ms | median error | |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for rule, pairs in sorted(rows.items()):
        error = statistics.median(abs(saved - said) / said for said, saved in pairs)
        said, saved = (statistics.median(side) for side in zip(*pairs, strict=True))
        word = f"more than {100 * CLOSE:.0f} %" if error > CLOSE else ""
        yield f"| {rule} | {len(pairs)} | {said:.3f} | {saved:.3f} | {100 * error:.0f} % | {word} |"
        if word and len(pairs) >= ENOUGH:
            off.append(f'    "{rule}": "median error {100 * error:.0f} % of {len(pairs)} trials",')
    if off:
        yield from ("", *off)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--group", choices=("healthy", "cured"))
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--budget", default="6m")
    parser.add_argument("--bare", action="store_true", help="confirm what is recommended bare")
    parser.add_argument("--hand", action="store_true", help="time the edited twins bare")
    parser.add_argument("--gpu", action="store_true", help="the scripts that need one")
    parser.add_argument("--jobs", type=int, default=1, help="scripts at a time, two cores each")
    parser.add_argument("--scores", action="store_true", help="predicted against measured, by rule")
    asked = parser.parse_args()
    if asked.gpu and (asked.bare or asked.hand):
        parser.error("--gpu runs nothing bare")
    keep = (asked.keep or Path(tempfile.mkdtemp(prefix="try-"))).absolute()
    keep.mkdir(parents=True, exist_ok=True)
    if asked.scores:
        print("\n".join(scores(keep)))
        return
    free: queue.SimpleQueue[Cores] = queue.SimpleQueue()
    cores = sorted(os.sched_getaffinity(0))
    if asked.jobs > 1 and len(cores) < CORES_EACH * asked.jobs:
        sys.exit(f"{asked.jobs} jobs need {CORES_EACH * asked.jobs} cores; {len(cores)} are here")
    for job in range(asked.jobs):
        own = cores[CORES_EACH * job : CORES_EACH * (job + 1)]
        free.put(tuple(own) if asked.jobs > 1 else ())

    def one(script: Script) -> tuple[dict[str, Any], Ratios, Ratios]:
        mine = free.get()
        try:
            return carried_out(script, asked, keep, mine)
        finally:
            free.put(mine)

    wanted = []
    for script in scripts(asked.names, None, None, gpu=asked.gpu):
        kind = "healthy" if script.group == "healthy" else "cured" if script.twin else None
        if kind and asked.group in (None, kind):
            wanted.append((script, kind))
    tally = Tally()
    with ThreadPoolExecutor(asked.jobs) as pool:
        running = {pool.submit(one, script): (script, kind) for script, kind in wanted}
        for done in as_completed(running):
            script, kind = running[done]
            found, confirmed, hand = done.result()
            show(script, found, confirmed, hand)
            tally.add(script, kind == "cured", found, confirmed)
    tally.show()


class Tally:
    """What is counted over all scripts."""

    def __init__(self) -> None:
        self.tried: list[bool] = []
        self.cured: list[bool] = []
        self.near: list[bool] = []
        self.false: list[str] = []
        self.missing: list[str] = []
        self.healthy = 0
        self.seconds: list[float] = []
        self.costs: list[float] = []

    def add(self, script: Script, has_cure: bool, found: dict[str, Any], confirmed: Ratios) -> None:
        best = found.get("recommended")
        self.seconds.append(found["seconds"])
        self.costs += found.get("costs", [])
        if confirmed and best:
            low, high = (1 - NEAR) * confirmed[0], (1 + NEAR) * confirmed[1]
            self.near.append(low <= best["ratio"] <= high)
        if not has_cure:
            self.healthy += 1
            if best and not (confirmed and confirmed[0] > 1):
                self.false.append(script.name)
            return
        rows = [*found["trials"], *(r for r in found["not_tried"] if r["settings"] or r["patch"])]
        offered = [row for row in rows if set(row["rules"]) & script.cured_rules]
        self.tried.append(bool(offered))
        if not offered:
            self.missing.append(script.name)
        self.cured.append(any(row.get("verdict") == "accepted" for row in offered))

    def show(self) -> None:
        if self.tried:
            print(f"cures offered: {percent(self.tried)}, accepted: {percent(self.cured)}")
            both = [good for good, there in zip(self.cured, self.tried, strict=True) if there]
            print(f"of those offered, accepted: {percent(both)}")
            print(f"without a remedy of the rule in question: {', '.join(self.missing) or 'none'}")
        if self.healthy:
            print(f"healthy: {self.healthy}, accepted, not confirmed: {self.false or 'none'}")
        if self.near:
            print(f"recommended gain within 5 % of the bare turns' range: {percent(self.near)}")
        if self.costs:
            each = ", ".join(
                f"{cost:.2f}" for cost in (statistics.median(self.costs), max(self.costs))
            )
            print(
                f"{len(self.costs)} trials inside a process, in times of compiling and blocks: "
                f"median and most {each}"
            )
        if self.seconds:
            print(f"median {statistics.median(self.seconds):.0f} s a script")


if __name__ == "__main__":
    main()
