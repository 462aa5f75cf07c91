"""What a cause is said to cost beside what a script gains that is cured of it by hand.

Milliseconds a step: a long run less one half as long, CPU time. Seconds: what torch's compiling
takes in the same few steps, with cold caches, script and twin by turns, the best turn of each,
since noise only adds; what the whole process takes is shown beside it. Where others work on the
machine only CPU seconds mean something, and what was predicted is then made of them, too: by the
share of its time that compiling again had a processor when the script was diagnosed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from evaluation_set import Finding, Script, all_of, percent, stored

CLOSE = 0.25  # how near a measured prediction must come to the measured gain
ENOUGH_S = 4.0  # of steps, so that the noise of two processes' starts is small beside them
TURNS, MORE_TURNS = 2, 6  # compiling takes tenths of a second more or less from turn to turn …
SMALL_S = 4.0  # … which a gain below this is to be told from
SECONDS, MS = "seconds", "ms_per_step"
CLOCKED = Path(__file__).with_name("scripts") / "clocked.py"
CHECKS = "from torch._inductor.cpu_vec_isa import pick_vec_isa; pick_vec_isa()"


@dataclass(frozen=True)
class Prediction:
    """One figure of a finding."""

    rule: str
    unit: str
    value: float
    confidence: str


def predictions(script: Script, diagnosis: dict[str, object]) -> Iterator[Prediction]:
    """What the finding that the twin cures says of itself; else what follows from it says."""
    findings: list[Finding] = diagnosis["findings"]  # type: ignore[assignment]
    cured = next((f for f in all_of(findings) if f["rule"] in script.cured_rules), None)
    for unit in (SECONDS, MS):
        for one in all_of([cured] if cured else []):
            value = (one["cost"] or {}).get(unit)
            if value is not None:
                yield Prediction(one["rule"], unit, value, one["confidence"])
                break


def _spent(words: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Wall and CPU seconds of one process with its children."""
    begin, before = time.perf_counter(), os.times()
    subprocess.run(words, env=environment, capture_output=True, check=True)
    wall, after = time.perf_counter() - begin, os.times()
    mine = after.children_user - before.children_user
    return wall, mine + after.children_system - before.children_system


def per_unit(script: Script, path: Path, caches: Path, more: int = 0) -> float:
    """Bare milliseconds for one unit of the script's length: a long run less one half as long.

    CPU time: with one thread that is the step's own time, and neighbours do not disturb it. A
    script may compile again late, so the longest run comes first and fills the caches, and the
    shorter of the two that count is long, too. ``more``: units to begin with.
    """

    def timed(count: int) -> float:
        words, environment = script.command(path, count)
        environment["TORCHINDUCTOR_CACHE_DIR"] = str(caches)
        return _spent(words, environment)[1]

    more = more or script.few
    while True:
        timed(script.few + 2 * more)
        half, whole = timed(script.few + more), timed(script.few + 2 * more)
        if whole - half >= ENOUGH_S:
            return 1000 * (whole - half) / more
        more = int(more * min(20.0, 1.3 * ENOUGH_S / max(whole - half, 0.05)) + 1)


def per_unit_on_device(script: Script, path: Path, caches: Path) -> float:
    """The same where a device sets the pace: by the wall, what comes after the last compile."""
    half, whole = (
        _clocked(script, path, caches, count)["after_s"] for count in (script.few, 2 * script.few)
    )
    return 1000 * (whole - half) / script.few


def cold(script: Script, path: Path, keep: Path) -> dict[str, float]:
    """Seconds of its few steps, all compiled anew: of the process, and of compiling alone.

    Only what Inductor asks the C++ compiler about the processor is known: it is the same for both.
    """
    with tempfile.TemporaryDirectory(prefix="cold-") as scratch:
        caches = Path(scratch, "caches")
        shutil.copytree(_checked(keep), caches)
        return _clocked(script, path, caches, script.few)


def _clocked(script: Script, path: Path, caches: Path, count: int) -> dict[str, float]:
    """What ``clocked.py`` says of ``count`` units of the script's, and what the process takes."""
    words, environment = script.command(path, count)
    environment["TORCHINDUCTOR_CACHE_DIR"] = str(caches)
    with tempfile.TemporaryDirectory(prefix="clocked-") as scratch:
        out = Path(scratch, "clocked.json")
        wall, cpu = _spent([words[0], str(CLOCKED), str(out), *words[1:]], environment)
        return {"wall_s": wall, "cpu_s": cpu} | json.loads(out.read_text())


def _checked(keep: Path) -> Path:
    """A cache folder with Inductor's checks of the processor and nothing else."""
    folder = keep / "checks"
    if not folder.is_dir():
        environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(folder)}
        subprocess.run([sys.executable, "-c", CHECKS], env=environment, check=True)
    return folder


def turns_of(expected: Iterable[Prediction]) -> dict[str, int]:
    """The units of what was predicted, and how often each is measured."""
    return {one.unit: TURNS if one.value >= SMALL_S else MORE_TURNS for one in expected}


def measure_pair(script: Script, keep: Path, wanted: dict[str, int]) -> None:
    """Figures of the script and of its twin, in each unit of ``wanted``."""
    twin = script.twin
    assert twin is not None
    found: dict[str, object] = stored(keep, f"{script.name}.pair.json")
    for unit, turns in wanted.items():
        try:
            if unit == MS:
                caches = keep / "caches" / script.name
                measure = per_unit_on_device if script.on_gpu else per_unit
                found["script_ms"] = measure(script, script.main, caches)
                found["fixed_ms"] = measure(script, twin, caches)
            else:
                paths = (script.main, twin)
                both = [[cold(script, path, keep) for path in paths] for _ in range(turns)]
                found["script_s"], found["fixed_s"] = zip(*both, strict=True)
        except subprocess.CalledProcessError:
            found[f"{unit}_failed"] = True
    (keep / f"{script.name}.pair.json").write_text(json.dumps(found))


@dataclass(frozen=True)
class Gain:
    """What script and twin take, in the unit of a prediction."""

    before: float
    after: float
    whole_s: float | None = None  # that the processes differ by
    each: float = 1.0

    @property
    def value(self) -> float:
        return (self.before - self.after) / self.each


def gain(script: Script, keep: Path, unit: str, *, cpu: bool = False) -> Gain | None:
    """None: not measured. ``cpu``: seconds are those of the processor."""
    found = stored(keep, f"{script.name}.pair.json")
    if unit == MS:
        before, after = found.get("script_ms"), found.get("fixed_ms")
        return Gain(before, after, None, script.steps_each) if before and after else None
    sides = found.get("script_s"), found.get("fixed_s")
    if not all(sides):
        return None
    compiling, whole = ("compile_cpu_s", "cpu_s") if cpu else ("compile_s", "wall_s")
    (before, before_all), (after, after_all) = (
        [min(turn[name] for turn in side) for name in (compiling, whole)] for side in sides
    )
    return Gain(before, after, before_all - after_all)


def processor_share(script: Script, keep: Path) -> float | None:
    """CPU seconds of a second of compiling again in the diagnosed run; None: not recorded."""
    again, first = [0.0, 0.0], [0.0, 0.0]
    for path in sorted((keep / script.name / "raw" / "cold").glob("events-*.jsonl")):
        for event in map(json.loads, path.read_text().splitlines()):
            if event["event"] == "compile" and event.get("cpu_ms") is not None:
                kept = first if str(event["compile_id"]).endswith("/0") else again
                kept[0] += event["cpu_ms"]
                kept[1] += event["duration_ms"]
    cpu, wall = again if again[1] else first
    return cpu / wall if wall else None


def show_pairs(
    judged: list[tuple[Script, dict[str, object]]], keep: Path, *, cpu: bool = False
) -> None:
    """Predicted against measured gain; what was predicted alone where there is no twin."""
    clock = "CPU s" if cpu else "s"
    print("\n| script | by | unit | predicted | | script | fixed | gain | off | process |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    close: list[bool] = []
    for script, diagnosis in judged:
        for said in predictions(script, diagnosis):
            share = processor_share(script, keep) if cpu and said.unit == SECONDS else 1.0
            value = said.value * (share or 1.0)
            unit = "ms a step" if said.unit == MS else clock if share else "s"
            row = f"| {script.name} | {said.rule} | {unit} | {value:.3f} | {said.confidence} |"
            found = gain(script, keep, said.unit, cpu=cpu) if script.twin is not None else None
            if found is None or share is None:
                print(row + " | | | | |")
                continue
            off = value / found.value - 1 if found.value else float("inf")
            if said.confidence == "measured":
                close.append(abs(off) <= CLOSE)
            whole = "" if found.whole_s is None else f"{found.whole_s:.2f}"
            print(
                f"{row} {found.before:.3f} | {found.after:.3f} | {found.value:.3f} "
                f"| {100 * off:+.0f} % | {whole} |"
            )
    print(f"\n- measured predictions within {100 * CLOSE:.0f} %: {percent(close)}")
