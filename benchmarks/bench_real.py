"""Do verdict, reasons and advice hold on programs that use real libraries?

Each program of ``evaluation/real`` prints what one of its own steady steps takes. It is run bare,
eager and compiled by turns, one process each, with the diagnosis in the middle of the turns: what
slows the machine down slows both. ``--record`` stops there, on a machine that has torch, the
libraries, msgspec and wcwidth, but not what the analysis needs; ``--compare`` reads its folder
anywhere, by today's rules. ``--python`` is the interpreter that has the libraries.

    python benchmarks/bench_real.py [NAME...] --python PY [--rounds 3] [--gpu] [--record DIR]
    python benchmarks/bench_real.py [NAME...] --compare DIR

``--gpu`` leaves out what a single GPU says nothing about. ``--jobs`` runs several programs at once:
sooner done, but they disturb each other. ``--cpu`` takes the bare figures in CPU time: where others
work on the machine, wall time says little of a program of one thread (and CPU time nothing of one
that waits for workers or other ranks).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import tomllib
from evaluation_set import EVALUATION, all_of, percent, stored

from traceview.collectors import CollectOptions

REAL = EVALUATION / "real"
LIMIT_S = 1200.0
EAGER = {"TORCH_COMPILE_DISABLE": "1", "TORCHDYNAMO_DISABLE": "1"}  # one for torch before 2.9
_COLLECT = """
import json, pathlib, sys
from traceview.collectors import CollectOptions, collect

class Quiet:
    say = progress = print

options = json.loads(sys.argv[1])
collect(CollectOptions(**options | {"out": pathlib.Path(sys.argv[2])}), Quiet())
"""
_VERSIONS = """
import json, sys, torch
from importlib.metadata import version
device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
print(json.dumps({"device": device} | {name: version(name) for name in ("torch", *sys.argv[1:])}))
"""


@dataclass(frozen=True)
class Program:
    """One program, as ``programs.toml`` has it."""

    name: str
    libraries: tuple[str, ...] = ()
    module: str = ""
    args: tuple[str, ...] = ()
    ranks: int = 1
    gpu: bool = True

    def options(self, python: str) -> CollectOptions:
        """How traceview runs it; ``command`` of it is the user's own."""
        path = str(REAL / "programs" / f"{self.name}.py")
        return CollectOptions(
            kind="module" if self.module else "script",
            target=self.module or path,
            args=(*self.args, path) if self.module else tuple(self.args),
            python=python,
            nproc=self.ranks,
            timeout_s=LIMIT_S,
            force=True,
        )


def programs(names: list[str], *, gpu: bool) -> list[Program]:
    entries = tomllib.loads((REAL / "programs.toml").read_text(encoding="utf-8"))
    if unknown := set(names) - set(entries):
        sys.exit(f"no such program: {', '.join(sorted(unknown))}")
    found = [Program(name, **entry) for name, entry in entries.items()]
    return [p for p in found if (not names or p.name in names) and (p.gpu or not gpu)]


def bare(program: Program, folder: Path, python: str, *, eager: bool) -> dict[str, Any]:
    """One process: what the program prints of each callable, and how busy the machine was."""
    caches = {"TORCHINDUCTOR_CACHE_DIR": str(folder / "cache")}
    words = ["timeout", f"{LIMIT_S:.0f}", *program.options(python).command(python)]
    begin = time.perf_counter()
    with (folder / "bare.txt").open("a") as log:
        done = subprocess.run(
            words,
            env={**os.environ, **caches, **(EAGER if eager else {})},
            cwd=folder / "cwd",
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    printed = [json.loads(s) for s in done.stdout.splitlines() if s.startswith('{"callable"')]
    load, taken = os.getloadavg()[0], time.perf_counter() - begin
    return {"exit": done.returncode, "seconds": taken, "load": load, "printed": printed}


def diagnose(program: Program, folder: Path, python: str) -> dict[str, Any]:
    """Collect the run; no table is made here."""
    options = json.dumps(asdict(program.options(python)))
    begin = time.perf_counter()
    with (folder / "collect.txt").open("w") as log:
        words = [sys.executable, "-P", "-c", _COLLECT, options, str(folder / "run")]
        done = subprocess.run(words, cwd=folder / "cwd", stdout=log, stderr=log)
    return {
        "exit": done.returncode,
        "seconds": time.perf_counter() - begin,
        "load": os.getloadavg()[0],
    }


def record(program: Program, keep: Path, python: str, rounds: int) -> None:
    """Bare by turns with the diagnosis in their middle; goes on where an earlier one stopped."""
    folder = keep / program.name
    (folder / "cwd").mkdir(parents=True, exist_ok=True)
    figures: dict[str, Any] = stored(folder, "bare.json") or {"eager": [], "compiled": []}
    words = [python, "-c", _VERSIONS, *program.libraries]
    versions = subprocess.run(words, capture_output=True, text=True)
    if versions.returncode:
        print(f"{program.name}: left out, {versions.stderr.strip().splitlines()[-1]}", flush=True)
        return
    figures["versions"] = json.loads(versions.stdout)
    for turn in range(rounds):
        for stance in ("eager", "compiled"):
            if len(figures[stance]) <= turn:
                one = bare(program, folder, python, eager=stance == "eager")
                print(f"{program.name}: {stance} {said(one)}", flush=True)
                if not one["printed"]:
                    return
                figures[stance].append(one)
                (folder / "bare.json").write_text(json.dumps(figures))
        if turn == rounds // 2 and "diagnosis" not in figures:
            figures["diagnosis"] = one = diagnose(program, folder, python)
            print(f"{program.name}: diagnosed, {one['seconds']:.0f} s", flush=True)
            (folder / "bare.json").write_text(json.dumps(figures))


def said(one: dict[str, Any]) -> str:
    """A bare run in a few words."""
    steps = [f"{p['ms_per_step']:.3g} ms ({p['cpu_ms_per_step']:.3g} CPU)" for p in one["printed"]]
    ended = ", ".join(steps) or f"no figure, exit {one['exit']}"
    return f"{ended} ({one['seconds']:.0f} s, load {one['load']:.1f})"


@dataclass(frozen=True)
class Row:
    """A program's bare figures and what its diagnosis says."""

    program: Program
    eager: list[float]
    compiled: list[float]
    diagnosis: dict[str, Any]
    versions: dict[str, str]

    @property
    def verdict(self) -> dict[str, Any]:
        return self.diagnosis["verdict"]  # type: ignore[no-any-return]

    @property
    def ratio(self) -> float:
        return statistics.median(self.eager) / statistics.median(self.compiled)

    @property
    def turns(self) -> list[float]:
        """The ratio in each turn: both sides of one ran one right after the other."""
        return [e / c for e, c in zip(self.eager, self.compiled, strict=False)]

    @property
    def repeats_within(self) -> float:
        """Half the range of the turns' ratios, over the ratio."""
        return (max(self.turns) - min(self.turns)) / 2 / self.ratio

    def quiet(self, within: float) -> bool:
        return self.repeats_within <= within

    @property
    def interval(self) -> tuple[float, float] | None:
        return self.verdict["speedup_interval"] and tuple(self.verdict["speedup_interval"])

    @property
    def inside(self) -> bool:
        return self.interval is not None and self.interval[0] <= self.ratio <= self.interval[1]

    @property
    def off(self) -> float | None:
        """The verdict's speedup over the bare ratio, less one."""
        speedup = self.verdict["speedup"]
        return speedup / self.ratio - 1 if speedup else None

    @property
    def width(self) -> float | None:
        """Half the interval, over its middle."""
        if self.interval is None:
            return None
        low, high = self.interval
        return (high - low) / (high + low)

    @property
    def named(self) -> float | None:
        """Share of the difference that ``why`` names, where the verdict claims a difference."""
        difference, rest = self.verdict["difference_ms"], self.verdict["unexplained_ms"]
        if self.verdict["outcome"] not in ("helped", "hurt") or not difference or rest is None:
            return None
        return max(0.0, 1 - abs(rest) / abs(difference))

    @property
    def weighty(self) -> bool:
        """By more than 10 %: then the reasons have to be named."""
        return self.verdict["speedup"] is not None and not 1 / 1.1 <= self.verdict["speedup"] <= 1.1

    @property
    def remedy(self) -> str | None:
        """The first finding that accounts for a part of a loss, or costs time in each step."""
        for part in self.verdict["why"]:
            if (part["ms"] or 0) > 0 and part["finding"]:
                return str(part["finding"])
        for finding in all_of(self.diagnosis["findings"]):
            if finding["severity"] != "info" and (finding["cost"] or {}).get("ms_per_step"):
                return str(finding["code"])
        return None


def compared(program: Program, keep: Path, clock: str) -> Row | None:
    """By the program's ``clock``; None, and why, where something is missing."""
    folder = keep / program.name
    figures = stored(folder, "bare.json")
    if not figures:
        return None
    words = [sys.executable, "-m", "traceview", "report", "--json", "--refresh"]
    done = subprocess.run([*words, str(folder / "run")], capture_output=True, text=True)
    (folder / "report.txt").write_text(done.stderr)
    try:
        diagnosis = json.loads(done.stdout)
        eager, compiled = (weightiest(figures[side], clock) for side in ("eager", "compiled"))
    except (ValueError, IndexError) as error:
        print(f"{program.name}: {error!r}; see {folder}", file=sys.stderr)
        return None
    return Row(program, eager, compiled, diagnosis, figures["versions"])


def weightiest(runs: list[dict[str, Any]], clock: str) -> list[float]:
    """Milliseconds in each run of the callable that the program spends most time in."""
    totals = [p["ms_per_step"] * p["steps"] for p in runs[0]["printed"]]
    place = totals.index(max(totals, default=0.0)) if totals else 0
    return [run["printed"][place][clock] for run in runs]


def signed(value: float | None) -> str:
    return "" if value is None else f"{100 * value:+.1f} %"


def share(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.0f} %"


def bounds(value: float | None) -> str:
    return "" if value is None else f"±{100 * value:.1f} %"


def show(rows: list[Row]) -> None:
    print(
        "\n| program | bare eager | bare compiled | bare ratio | verdict | inside | off | width "
        "| named | first finding | remedy |"
    )
    print("| --- " * 11 + "|")
    for row in rows:
        verdict, first = row.verdict, next(iter(row.diagnosis["findings"]), None)
        given = verdict["outcome"]
        if row.interval:
            given += f" {verdict['speedup']:.2f}× ({row.interval[0]:.2f} to {row.interval[1]:.2f})"
        remedy = (row.remedy or "**none**") if verdict["outcome"] == "hurt" else ""
        print(
            f"| {row.program.name} | {statistics.median(row.eager):.3g} ms "
            f"| {statistics.median(row.compiled):.3g} ms "
            f"| {row.ratio:.2f}× ± {100 * row.repeats_within:.0f} % | {given} "
            f"| {'yes' if row.inside else '**no**'} | {signed(row.off)} | {bounds(row.width)} "
            f"| {share(row.named)} | {first['code'] if first else ''} | {remedy} |"
        )
    print(f"\n- bare ratio inside the interval: {percent([row.inside for row in rows])}")
    close = [row.off is not None and abs(row.off) <= 0.05 for row in rows if row.quiet(0.03)]
    print(f"- medians within 5 %, where bare repeats within 3 %: {percent(close)}")
    narrow = [row.width is not None and row.width <= 0.1 for row in rows if row.quiet(0.05)]
    print(f"- interval within ±10 %, where bare repeats within 5 %: {percent(narrow)}")
    named = [(row.named or 0) >= 0.9 for row in rows if row.weighty and row.named is not None]
    print(f"- 90 % of the difference named, of more than 10 %: {percent(named)}")
    hurt = [row.remedy is not None for row in rows if row.verdict["outcome"] == "hurt"]
    print(f"- hurt, with a finding that says what to do: {percent(hurt)}")
    versions = {name: version for row in rows for name, version in row.versions.items()}
    print("- " + ", ".join(f"{name} {version}" for name, version in versions.items()))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="programs; all if none is given")
    parser.add_argument("--python", default=sys.executable, help="has the libraries")
    parser.add_argument("--rounds", type=int, default=3, help="bare runs of each side")
    parser.add_argument("--gpu", action="store_true", help="those that a GPU says something about")
    parser.add_argument("--jobs", type=int, default=1, help="programs at once")
    parser.add_argument("--record", type=Path, metavar="DIR", help="run and collect, read later")
    parser.add_argument("--compare", type=Path, metavar="DIR", help="read what --record left")
    parser.add_argument("--cpu", action="store_true", help="bare CPU seconds: a busy machine")
    return parser.parse_args()


def main() -> None:
    args = parse()
    keep: Path = (args.compare or args.record or Path("traceview-real")).resolve()
    chosen = programs(args.names, gpu=args.gpu)
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # two processes, two processors
    if not args.compare:
        with ThreadPoolExecutor(args.jobs) as pool:
            list(pool.map(lambda p: record(p, keep, args.python, args.rounds), chosen))
    if not args.record:
        clock = "cpu_ms_per_step" if args.cpu else "ms_per_step"
        show([row for p in chosen if (row := compared(p, keep, clock)) is not None])


if __name__ == "__main__":
    main()
