"""Does ``traceview accuracy`` find faults put in on purpose, and accuse no right script?

Runs each script of ``evaluation/accuracy/scripts``, against ``expected.toml``. Of a wrong one it
has to name what is wrong, the direction, and the first wrong stage of the compiler where one is
given.

    python benchmarks/bench_accuracy.py [NAME...] [--keep DIR]
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
LIMIT_S = 300.0
CODES = {"agree": 0, "differ": 1, "not_compared": 4}


def answered(script: Path, folder: Path) -> tuple[dict[str, Any], float]:
    """What the command prints, and the seconds it took; what it failed with under ``failed``."""
    command = [sys.executable, "-m", "traceview", "accuracy", "--json", "--force"]
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("name", nargs="*", help="these scripts only")
    parser.add_argument("--keep", type=Path, help="folder for the run folders")
    args = parser.parse_args()
    expected = tomllib.loads((SET / "expected.toml").read_text(encoding="utf-8"))
    score: dict[str, list[bool]] = {"differ": [], "agree": []}
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.keep or Path(scratch)
        for name, wanted in expected.items():
            if args.name and name not in args.name:
                continue
            answer, taken = answered(SET / "scripts" / f"{name}.py", folder / name)
            bad = faults(answer, wanted)
            score[wanted["verdict"]].append(not bad)
            said = "; ".join(bad) or "as expected"
            print(f"{name:<20} {taken:5.1f} s  {said}", flush=True)
    wrong, right = score["differ"], score["agree"]
    print(f"faults found: {sum(wrong)} of {len(wrong)}", end=", ")
    print(f"right scripts accused: {len(right) - sum(right)} of {len(right)}")
    sys.exit(0 if all(wrong + right) else 1)


if __name__ == "__main__":
    main()
