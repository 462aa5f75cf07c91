"""Does traceview name the right cause first, on the right line, and cry no wolf?

Each script of ``evaluation/scripts`` runs under ``traceview diagnose --json``; the answer is laid
beside ``evaluation/expected.toml``. ``--keep`` holds the run folders: ``--compare`` reads them
again (after a change of the rules, say) without diagnosing a script. ``--bare`` also runs each
script by itself, to compare the time. ``--pairs`` measures each script that has an edited twin
``NAME.fixed.py`` and the twin, and compares the gain with the one that was predicted (``--cpu``: in
CPU seconds, where others work on the machine).

    python benchmarks/bench_evaluation.py [NAME...] [--group one] [--part seen] [--keep DIR]

``--gpu`` takes the scripts of ``evaluation/gpu``. A machine with a GPU may have torch alone:
``--record`` collects there and measures the twins, ``--compare`` reads the folder anywhere.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluation_pairs import TURNS, measure_pair, predictions, show_pairs, turns_of
from evaluation_set import Finding, Script, all_of, as_list, fits, percent, scripts, stored

ALARMS = ("warning", "error")
_COLLECT = """
import pathlib, sys
from traceview.collectors import CollectOptions, collect

class Quiet:
    say = progress = print

target, out = sys.argv[1:]
collect(CollectOptions(kind="script", target=target, out=pathlib.Path(out)), Quiet())
"""
SLACK_S, TIMES_BARE = 30.0, 2.0  # what a whole diagnosis may take beside the bare script


def diagnose(script: Script, keep: Path) -> None:
    """Run it under traceview; the run folder, the answer and the seconds stay in ``keep``."""
    command = [sys.executable, "-m", "traceview", "diagnose", "--json", "--force"]
    begin = time.perf_counter()
    done = subprocess.run(
        [*command, "-o", str(keep / script.name), str(script.main)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    taken = {"diagnose_s": time.perf_counter() - begin, "exit": done.returncode}
    (keep / f"{script.name}.time.json").write_text(json.dumps(taken))
    (keep / f"{script.name}.json").write_text(done.stdout)
    (keep / f"{script.name}.stderr.txt").write_text(done.stderr)


def record(script: Script, keep: Path) -> None:
    """Collect the run and measure script and twin: no table is made here."""
    words = [sys.executable, "-P", "-c", _COLLECT, str(script.main), str(keep / script.name)]
    begin = time.perf_counter()
    done = subprocess.run(words, capture_output=True, text=True)
    print(f"{script.name}: collected in {time.perf_counter() - begin:.0f} s", flush=True)
    (keep / f"{script.name}.stderr.txt").write_text(done.stdout + done.stderr)
    shutil.rmtree(keep / script.name / "cache", ignore_errors=True)
    if script.twin is not None:
        measure_pair(script, keep, {script.unit: TURNS})


def answer(script: Script, keep: Path, *, again: bool) -> dict[str, Any] | None:
    """The diagnosis; ``again``: by today's rules from the run folder."""
    name = f"{script.name}.json"
    if again and (keep / script.name).is_dir():
        command = [sys.executable, "-m", "traceview", "report", "--json", "--refresh"]
        done = subprocess.run([*command, str(keep / script.name)], capture_output=True, text=True)
        (keep / name).write_text(done.stdout)
    return stored(keep, name) or None


def run_bare(script: Script, keep: Path) -> None:
    """The script alone, with cold caches, as the diagnosis had them.

    It is stopped as soon as it has run long enough for the diagnosis to be in time.
    """
    diagnose_s = stored(keep, f"{script.name}.time.json").get("diagnose_s", 0.0)
    enough = (diagnose_s - SLACK_S) / TIMES_BARE
    taken = {"bare_s": enough, "at_least": True}
    if enough > 0:
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        with tempfile.TemporaryDirectory(prefix="bare-") as caches:
            environment["TORCHINDUCTOR_CACHE_DIR"] = caches
            ended = run_for(enough, [sys.executable, str(script.main)], environment)
        if ended is not None:
            taken = {"bare_s": ended, "at_least": False}
    (keep / f"{script.name}.bare.json").write_text(json.dumps(taken))


def run_for(limit_s: float, words: list[str], environment: dict[str, str]) -> float | None:
    """Seconds to its own end; None if it was stopped at the limit, with its children."""
    begin = time.perf_counter()
    process = subprocess.Popen(
        words,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        process.wait(limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return None
    return time.perf_counter() - begin


def names_line(script: Script, finding: Finding, cause: dict[str, Any]) -> bool:
    """Is its location one of the lines meant, by their text? "" among them: none is needed."""
    lines = as_list(cause["lines"])
    place = finding["location"]
    if place is None or place["line"] is None:
        return "" in lines
    meant = [file for file in as_list(cause["file"]) if place["file"].endswith(file)]
    if not meant:
        return False
    path = Path(place["file"])
    if not path.exists():  # it ran on another machine
        path = script.main.parent / (meant[0] or path.name)
    try:
        source = path.read_text(encoding="utf-8").splitlines()
        return source[place["line"] - 1].strip() in lines
    except (OSError, IndexError):
        return False


@dataclass
class Judgement:
    """What the answer to one script is worth."""

    script: Script
    outcome: str
    speedup: float | None
    given: str
    first_right: bool | None = None  # None: healthy, nothing to find
    line_right: bool | None = None
    found: int = 0
    alarms: list[str] = field(default_factory=list)
    diagnose_s: float | None = None
    bare_s: float | None = None

    @property
    def in_time(self) -> bool | None:
        if self.diagnose_s is None or self.bare_s is None:
            return None
        return self.diagnose_s <= TIMES_BARE * self.bare_s + SLACK_S


def judge(script: Script, diagnosis: dict[str, Any], keep: Path) -> Judgement:
    """Lay one answer beside the expected one."""
    findings: list[Finding] = diagnosis["findings"]
    everything = list(all_of(findings))
    first = findings[0] if findings else None
    judgement = Judgement(
        script=script,
        outcome=diagnosis["verdict"]["outcome"],
        speedup=diagnosis["verdict"]["speedup"],
        given=f"{first['rule']} ({first['severity']})" if first else "nothing",
        found=sum(any(fits(f, cause) for f in everything) for cause in script.causes),
        diagnose_s=stored(keep, f"{script.name}.time.json").get("diagnose_s"),
        bare_s=stored(keep, f"{script.name}.bare.json").get("bare_s"),
    )
    if script.group == "healthy":
        judgement.alarms = [f["rule"] for f in everything if f["severity"] in ALARMS]
        return judgement
    meant = [c for c in script.causes[: script.first] if first is not None and fits(first, c)]
    judgement.first_right = bool(meant)
    judgement.line_right = first is not None and any(names_line(script, first, c) for c in meant)
    return judgement


def sign(value: bool | None) -> str:
    return {True: "yes", False: "**no**", None: ""}[value]


def seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.0f} s"


def show(judgements: list[Judgement]) -> None:
    """The table of all scripts, and the totals."""
    print("| script | group | verdict | first cause given | right | line | found | alarms | time |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for j in judgements:
        speedup = "" if j.speedup is None else f" {j.speedup:.2f}×"
        taken = " / ".join(filter(None, (seconds(j.diagnose_s), seconds(j.bare_s))))
        group = j.script.group if j.script.seen else f"{j.script.group}, unseen"
        found = f"{j.found} of {len(j.script.causes)}" if j.script.causes else ""
        print(
            f"| {j.script.name} | {group} | {j.outcome}{speedup} | {j.given} "
            f"| {sign(j.first_right)} | {sign(j.line_right)} | {found} "
            f"| {', '.join(j.alarms)} | {taken} |"
        )

    def total(title: str, value: Callable[[Judgement], bool | None]) -> None:
        known = [(j, v) for j in judgements if (v := value(j)) is not None]
        unseen = percent([v for j, v in known if not j.script.seen])
        print(f"- {title}: {percent([v for _, v in known])}; unseen {unseen}")

    print()
    total("first cause right", lambda j: j.first_right)
    total("line right", lambda j: j.line_right)
    total("healthy without an alarm", lambda j: not j.alarms if j.first_right is None else None)
    total(f"within {TIMES_BARE:.0f} × bare + {SLACK_S:.0f} s", lambda j: j.in_time)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="scripts; all if none is given")
    parser.add_argument("--group", choices=("healthy", "one", "several"))
    parser.add_argument("--part", choices=("seen", "unseen"))
    parser.add_argument("--keep", type=Path, default=Path("evaluation-runs"))
    parser.add_argument("--compare", action="store_true", help="only read what --keep holds")
    parser.add_argument("--gpu", action="store_true", help="the scripts that need a GPU")
    parser.add_argument("--record", action="store_true", help="collect and measure, read later")
    parser.add_argument("--bare", action="store_true", help="run each script alone, too")
    parser.add_argument("--pairs", action="store_true", help="measure scripts beside their twins")
    parser.add_argument("--cpu", action="store_true", help="compare CPU seconds: a busy machine")
    return parser.parse_args()


def main() -> None:
    args = parse()
    keep: Path = args.keep.resolve()
    keep.mkdir(parents=True, exist_ok=True)
    judgements: list[Judgement] = []
    answers: list[tuple[Script, dict[str, Any]]] = []
    chosen = scripts(args.names, args.group, args.part, gpu=args.gpu)
    if args.record:
        for script in chosen:
            record(script, keep)
        return
    for script in chosen:
        if not args.compare:
            diagnose(script, keep)
        if args.bare:
            run_bare(script, keep)
        diagnosis = answer(script, keep, again=args.compare)
        if diagnosis is None:
            print(f"{script.name}: no diagnosis in {keep}", file=sys.stderr)
            continue
        judgements.append(judge(script, diagnosis, keep))
        if args.pairs and script.twin is not None:
            measure_pair(script, keep, turns_of(predictions(script, diagnosis)))
        answers.append((script, diagnosis))
    show(judgements)
    show_pairs(answers, keep, cpu=args.cpu)


if __name__ == "__main__":
    main()
