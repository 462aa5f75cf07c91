"""Does ``traceview accuracy`` find faults put in on purpose, and accuse no right script?

Runs each script of ``evaluation/accuracy/scripts``, against ``expected.toml``. Of a wrong one it
has to name what is wrong, the direction, and the first wrong stage of the compiler where one is
given. With ``--bisect`` it has to name the operator and its line, too; each script that it hands
over is run once more.

    python benchmarks/bench_accuracy.py [NAME...] [--bisect] [--gpu] [--keep DIR]

``--gpu``: those that need one, in place of the others.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import tomllib

SET = Path(__file__).resolve().parent.parent / "evaluation" / "accuracy"
LIMIT_S = 600.0
CODES = {"agree": 0, "differ": 1, "not_compared": 4}


def answered(script: Path, folder: Path, *words: str) -> tuple[dict[str, Any], float]:
    """What the command prints, and the seconds it took; what it failed with under ``failed``."""
    command = [sys.executable, "-m", "traceview", "accuracy", "--json", "--force", *words]
    command += ["-o", str(folder), str(script)]
    began = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    taken = time.perf_counter() - began
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        return {"failed": done.stderr[-600:]}, taken
    if done.returncode != CODES[answer["verdict"]]:
        answer["failed"] = f"exit code {done.returncode}"
    return answer, taken


def faults(answer: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    """What the answer has wrong, in words."""
    if "failed" in answer:
        return [f"failed: {answer['failed']}"]
    if answer["verdict"] != expected["verdict"]:
        wrong = [f"{one['name']} ({one['relative_error']})" for one in answer["differences"][:3]]
        reasons = [one["reason"] for one in answer["not_compared"][:2]]
        return [f"{answer['verdict']}, expected {expected['verdict']} {wrong or reasons}"]
    found = []
    differences = answer["differences"]
    for key in ("direction", "stage"):
        said = {one[key] for one in differences}
        if differences and key in expected and said != {expected[key]}:
            found.append(f"{key} {said}, expected {expected[key]}")
    kinds = {one["what"] for one in differences}
    if differences and not kinds & set(expected["what"]):
        found.append(f"{kinds} differ, expected one of {expected['what']}")
    return found


def unnamed(answer: dict[str, Any], expected: dict[str, Any], script: Path) -> list[str]:
    """What --bisect has wrong, in words: the operator, and its line where one is given."""
    (fault,) = answer["faults"] or [{"operator": None, "location": None, "not_found": None}]
    wanted = expected["operator"]
    wanted = {wanted} if isinstance(wanted, str) else set(wanted)
    named = ".".join((fault["operator"] or "").split(".")[:2])  # without the overload
    if named not in wanted:
        return [f"operator {fault['operator']}, expected {wanted} ({fault['not_found']})"]
    place, at = fault["location"], expected.get("at")
    if at is not None:
        lines = script.read_text(encoding="utf-8").splitlines()
        line = lines[place["line"] - 1].strip() if place else None
        if line is None or at not in line:
            return [f"line {line!r}, expected {at!r}"]
    return []


def shows(script: str) -> bool:
    """Whether the script that was handed over shows the fault."""
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    return "Compiled results differ from eager's." in done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("name", nargs="*", help="these scripts only")
    parser.add_argument("--bisect", action="store_true", help="down to the operator")
    parser.add_argument("--gpu", action="store_true", help="the scripts that need one")
    parser.add_argument("--keep", type=Path, help="folder for the run folders")
    args = parser.parse_args()
    expected = tomllib.loads((SET / "expected.toml").read_text(encoding="utf-8"))
    score: dict[str, list[bool]] = {"differ": [], "agree": [], "named": [], "scripts": []}
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.keep or Path(scratch)
        for name, wanted in expected.items():
            if (args.name and name not in args.name) or wanted.get("gpu", False) != args.gpu:
                continue
            script = SET / "scripts" / f"{name}.py"
            words = ["--bisect"] if args.bisect else []
            answer, taken = answered(script, folder / name, *words)
            bad = faults(answer, wanted)
            score[wanted["verdict"]].append(not bad)
            if args.bisect and "operator" in wanted and "failed" not in answer:
                other = unnamed(answer, wanted, script)
                score["named"].append(not other)
                written = [one["script"] for one in answer["faults"] if one["script"]]
                score["scripts"] += map(shows, written)
                bad += other
            said = "; ".join(bad) or "as expected"
            print(f"{name:<20} {taken:5.1f} s  {said}", flush=True)
    wrong, right = score["differ"], score["agree"]
    print(f"faults found: {sum(wrong)} of {len(wrong)}", end=", ")
    print(f"right scripts accused: {len(right) - sum(right)} of {len(right)}")
    if args.bisect:
        named, scripts = score["named"], score["scripts"]
        print(f"to the right operator and line: {sum(named)} of {len(named)}", end=", ")
        print(f"scripts that show the fault: {sum(scripts)} of {len(scripts)} handed over")
    sys.exit(0 if all(map(all, score.values())) else 1)


if __name__ == "__main__":
    main()
