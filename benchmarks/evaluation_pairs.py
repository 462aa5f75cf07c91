"""What a cause is said to cost beside what a script gains that is cured of it by hand.

Milliseconds a step: a long run less one half as long, CPU time. Seconds (of compiling): the same
few steps with cold caches, script and twin by turns, wall time, the best turn of each, since noise
only adds; CPU time is shown beside it.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from evaluation_set import Finding, Script, all_of, percent, stored

CLOSE = 0.25  # how near a measured prediction must come to the measured gain
ENOUGH_S = 4.0  # of steps, so that the noise of two processes' starts is small beside them
TURNS, MORE_TURNS = 2, 6  # starts of a process differ by tenths of a second …
SMALL_S = 4.0  # … which a gain below this is to be told from
SECONDS, MS = "seconds", "ms_per_step"


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


def cold(script: Script, path: Path) -> tuple[float, float]:
    """Wall and CPU seconds of its few steps, all compiled anew."""
    words, environment = script.command(path, script.few)
    with tempfile.TemporaryDirectory(prefix="cold-") as caches:
        environment["TORCHINDUCTOR_CACHE_DIR"] = caches
        return _spent(words, environment)


def measure_pair(script: Script, keep: Path, expected: list[Prediction]) -> None:
    """Figures of the script and of its twin, of each kind that something was predicted of."""
    twin = script.twin
    assert twin is not None
    found: dict[str, object] = stored(keep, f"{script.name}.pair.json")
    for one in expected:
        try:
            if one.unit == MS:
                caches = keep / "caches" / script.name
                found["script_ms"] = per_unit(script, script.main, caches)
                found["fixed_ms"] = per_unit(script, twin, caches)
            else:
                turns = range(TURNS if one.value >= SMALL_S else MORE_TURNS)
                both = [(cold(script, script.main), cold(script, twin)) for _ in turns]
                found["script_s"], found["fixed_s"] = zip(*both, strict=True)
        except subprocess.CalledProcessError:
            found[f"{one.unit}_failed"] = True
    (keep / f"{script.name}.pair.json").write_text(json.dumps(found))


@dataclass(frozen=True)
class Gain:
    """What script and twin take, in the unit of a prediction."""

    before: float
    after: float
    cpu: float | None  # CPU seconds gained
    each: float = 1.0

    @property
    def value(self) -> float:
        return (self.before - self.after) / self.each


def gain(script: Script, keep: Path, unit: str) -> Gain | None:
    """None: not measured."""
    found = stored(keep, f"{script.name}.pair.json")
    key = "ms" if unit == MS else "s"
    before, after = found.get(f"script_{key}"), found.get(f"fixed_{key}")
    if not before or not after:
        return None
    if unit == MS:
        return Gain(before, after, None, script.steps_each)
    (wall, cpu), (wall_after, cpu_after) = (_best(side) for side in (before, after))
    return Gain(wall, wall_after, cpu - cpu_after)


def _best(turns: list[tuple[float, float]]) -> list[float]:
    return [min(column) for column in zip(*turns, strict=True)]


def show_pairs(judged: list[tuple[Script, dict[str, object]]], keep: Path) -> None:
    """Predicted against measured gain; what was predicted alone where there is no twin."""
    print("\n| script | by | unit | predicted | | script | fixed | gain | off | CPU s gained |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    close: list[bool] = []
    for script, diagnosis in judged:
        for said in predictions(script, diagnosis):
            unit = "s" if said.unit == SECONDS else "ms a step"
            row = f"| {script.name} | {said.rule} | {unit} | {said.value:.3f} | {said.confidence} |"
            found = gain(script, keep, said.unit) if script.twin is not None else None
            if found is None:
                print(row + " | | | | |")
                continue
            off = said.value / found.value - 1 if found.value else float("inf")
            if said.confidence == "measured":
                close.append(abs(off) <= CLOSE)
            cpu = "" if found.cpu is None else f"{found.cpu:.2f}"
            print(
                f"{row} {found.before:.3f} | {found.after:.3f} | {found.value:.3f} "
                f"| {100 * off:+.0f} % | {cpu} |"
            )
    print(f"\n- measured predictions within {100 * CLOSE:.0f} %: {percent(close)}")
