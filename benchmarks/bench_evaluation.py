"""Does traceview name the right cause first, on the right line, and cry no wolf?

Each script of ``evaluation/scripts`` runs under ``traceview diagnose --json``; the answer is laid
beside ``evaluation/expected.toml``. ``--keep`` holds the run folders: ``--compare`` reads them
again (after a change of the rules, say) without running a script. ``--bare`` also runs each script
by itself, to its end, to compare the time. ``--pairs`` measures each script that has an edited
twin ``NAME.fixed.py`` and the twin, and compares the gain with the one that was predicted.

    python benchmarks/bench_evaluation.py [NAME...] [--group one] [--part seen] [--keep DIR]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomllib

EVALUATION = Path(__file__).resolve().parents[1] / "evaluation"
ALARMS = ("warning", "error")
SLACK_S, TIMES_BARE = 30.0, 2.0  # what a whole diagnosis may take beside the bare script
CLOSE = 0.25  # how near a measured prediction must come to the measured gain
ENOUGH_S = 4.0  # of steps, so that the noise of two processes' starts is small beside them

Finding = dict[str, Any]


@dataclass
class Script:
    """One script with its expected answers, as ``expected.toml`` has them."""

    name: str
    group: str
    seen: bool
    length: str  # the option (or variable, or "argv") that says how long it runs
    few: int  # of these, for a quick look
    steps_each: float = 1.0  # steps of traceview's in one of these
    first: int = 1  # so many of the causes may stand first
    causes: list[dict[str, Any]] = field(default_factory=list)
    why: str = ""

    @property
    def main(self) -> Path:
        folder = EVALUATION / "scripts" / self.name
        return folder / "main.py" if folder.is_dir() else folder.with_suffix(".py")

    @property
    def twin(self) -> Path | None:
        path = self.main.with_suffix(".fixed.py")
        return path if path.exists() else None

    def command(self, path: Path, count: int) -> tuple[list[str], dict[str, str]]:
        """Arguments and environment that run it for ``count`` of its own units."""
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        words = [sys.executable, str(path)]
        if self.length == "argv":
            words.append(str(count))
        elif self.length.startswith("--"):
            words += [self.length, str(count)]
        else:
            environment[self.length] = str(count)
        return words, environment


def scripts(names: list[str], group: str | None, part: str | None) -> Iterator[Script]:
    """Those asked for, or all."""
    expected = tomllib.loads((EVALUATION / "expected.toml").read_text(encoding="utf-8"))
    for name, entry in expected.items():
        script = Script(name=name, **entry)
        if names and name not in names:
            continue
        if group in (None, script.group) and part in (None, "seen" if script.seen else "unseen"):
            yield script


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


def answer(script: Script, keep: Path, *, again: bool) -> dict[str, Any] | None:
    """The diagnosis; ``again``: by today's rules from the run folder."""
    stored = keep / f"{script.name}.json"
    if again and (keep / script.name).is_dir():
        command = [sys.executable, "-m", "traceview", "report", "--json", "--refresh"]
        done = subprocess.run([*command, str(keep / script.name)], capture_output=True, text=True)
        stored.write_text(done.stdout)
    try:
        diagnosis: dict[str, Any] = json.loads(stored.read_text())
    except (OSError, ValueError):
        return None
    return diagnosis


def figure(keep: Path, name: str, key: str) -> float | None:
    """A figure that an earlier run left in ``keep``; None too where that run failed."""
    try:
        return float(json.loads((keep / name).read_text())[key])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def run_bare(script: Script, keep: Path) -> None:
    """The script alone, to its own end, with cold caches, as the diagnosis had them."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    environment["TORCHINDUCTOR_CACHE_DIR"] = str(keep / "caches" / f"{script.name}-{os.getpid()}")
    begin = time.perf_counter()
    command = [sys.executable, str(script.main)]
    subprocess.run(command, env=environment, capture_output=True, check=False)
    taken = {"bare_s": time.perf_counter() - begin}
    (keep / f"{script.name}.bare.json").write_text(json.dumps(taken))


def all_of(findings: list[Finding]) -> Iterator[Finding]:
    """Causes and, under them, what follows."""
    for finding in findings:
        yield finding
        yield from all_of(finding["symptoms"])


def as_list(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def names_line(finding: Finding, cause: dict[str, Any]) -> bool:
    """Is its location one of the lines meant, by their text? "" among them: none is needed."""
    lines = as_list(cause["lines"])
    place = finding["location"]
    if place is None or place["line"] is None:
        return "" in lines
    if not any(place["file"].endswith(file) for file in as_list(cause["file"])):
        return False
    try:
        source = Path(place["file"]).read_text(encoding="utf-8").splitlines()
        return source[place["line"] - 1].strip() in lines
    except (OSError, IndexError):
        return False


def fits(finding: Finding, cause: dict[str, Any]) -> bool:
    return finding["rule"] in as_list(cause["rules"])


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
        diagnose_s=figure(keep, f"{script.name}.time.json", "diagnose_s"),
        bare_s=figure(keep, f"{script.name}.bare.json", "bare_s"),
    )
    if script.group == "healthy":
        judgement.alarms = [f["rule"] for f in everything if f["severity"] in ALARMS]
        return judgement
    meant = [c for c in script.causes[: script.first] if first is not None and fits(first, c)]
    judgement.first_right = bool(meant)
    judgement.line_right = first is not None and any(names_line(first, c) for c in meant)
    return judgement


def per_unit(script: Script, path: Path, keep: Path) -> float | None:
    """Bare milliseconds for one unit of the script's length: a long run less one half as long.

    CPU time: with one thread that is the step's own time, and neighbours do not disturb it. A
    script may compile again late, so the longest run comes first and fills the caches, and the
    shorter of the two that count is long, too.
    """

    def timed(count: int) -> float:
        words, environment = script.command(path, count)
        environment["TORCHINDUCTOR_CACHE_DIR"] = str(keep / "caches" / "pairs")
        before = os.times()
        subprocess.run(words, env=environment, capture_output=True, check=True)
        after = os.times()
        mine = after.children_user - before.children_user
        return mine + after.children_system - before.children_system

    try:
        more = script.few
        while True:
            timed(script.few + 2 * more)
            half, whole = timed(script.few + more), timed(script.few + 2 * more)
            if whole - half >= ENOUGH_S:
                return 1000 * (whole - half) / more
            more = int(more * min(20.0, 1.3 * ENOUGH_S / max(whole - half, 0.05)) + 1)
    except subprocess.CalledProcessError:
        return None


def measure_pair(script: Script, keep: Path) -> None:
    """Milliseconds a unit of the script and of its twin, into ``keep``."""
    assert script.twin is not None
    times = {
        "script_ms": per_unit(script, script.main, keep),
        "fixed_ms": per_unit(script, script.twin, keep),
    }
    (keep / f"{script.name}.pair.json").write_text(json.dumps(times))


def predicted(script: Script, diagnosis: dict[str, Any]) -> tuple[float, str] | None:
    """What the expected cause is said to cost, ms a step, and how sure that is."""
    for finding in diagnosis["findings"]:
        if any(fits(finding, cause) for cause in script.causes[: script.first]):
            cost = (finding.get("whole_cost") or finding["cost"] or {}).get("ms_per_step")
            return None if cost is None else (cost, _confidence(finding, cost))
    return None


def _confidence(finding: Finding, cost: float) -> str:
    """How sure the figure is: a cause may have it from what follows from it."""
    for one in all_of([finding]):
        if (one["cost"] or {}).get("ms_per_step") == cost:
            return str(one["confidence"])
    return "derived"


def percent(values: list[bool]) -> str:
    if not values:
        return "none"
    return f"{sum(values)} of {len(values)} ({100 * sum(values) / len(values):.1f} %)"


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


def show_pairs(pairs: list[tuple[Script, dict[str, Any]]], keep: Path) -> None:
    """Predicted against measured gain."""
    print("\n| script | script, ms | fixed, ms | gain, ms a step | predicted | difference | |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    close: list[bool] = []
    for script, diagnosis in pairs:
        before = figure(keep, f"{script.name}.pair.json", "script_ms")
        after = figure(keep, f"{script.name}.pair.json", "fixed_ms")
        if before is None or after is None:
            continue
        gain = (before - after) / script.steps_each
        said = predicted(script, diagnosis)
        row = f"| {script.name} | {before:.3f} | {after:.3f} | {gain:.3f} "
        if said is None:
            print(row + "| none | | |")
            continue
        off = said[0] / gain - 1 if gain else float("inf")
        if said[1] == "measured":
            close.append(abs(off) <= CLOSE)
        print(row + f"| {said[0]:.3f} | {100 * off:+.0f} % | {said[1]} |")
    print(f"\n- measured predictions within {100 * CLOSE:.0f} %: {percent(close)}")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="scripts; all if none is given")
    parser.add_argument("--group", choices=("healthy", "one", "several"))
    parser.add_argument("--part", choices=("seen", "unseen"))
    parser.add_argument("--keep", type=Path, default=Path("evaluation-runs"))
    parser.add_argument("--compare", action="store_true", help="only read what --keep holds")
    parser.add_argument("--bare", action="store_true", help="run each script alone, too")
    parser.add_argument("--pairs", action="store_true", help="measure scripts beside their twins")
    return parser.parse_args()


def main() -> None:
    args = parse()
    keep: Path = args.keep.resolve()
    keep.mkdir(parents=True, exist_ok=True)
    judgements: list[Judgement] = []
    pairs: list[tuple[Script, dict[str, Any]]] = []
    for script in scripts(args.names, args.group, args.part):
        if not args.compare:
            diagnose(script, keep)
            if args.bare:
                run_bare(script, keep)
            if args.pairs and script.twin is not None:
                measure_pair(script, keep)
        diagnosis = answer(script, keep, again=args.compare)
        if diagnosis is None:
            print(f"{script.name}: no diagnosis in {keep}", file=sys.stderr)
            continue
        judgements.append(judge(script, diagnosis, keep))
        if script.twin is not None:
            pairs.append((script, diagnosis))
    show(judgements)
    show_pairs(pairs, keep)


if __name__ == "__main__":
    main()
