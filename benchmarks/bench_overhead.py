"""What does a step cost under traceview, outside the profiler windows?

A script times chunks of its own compiled steps (device-synchronised) and prints the median of the
last half of them. It is run bare and under ``traceview collect --run-to-end``, in turns; under
traceview the plan is over long before the last half begins, and the blocks' own compiled steps are
compared too.

    python benchmarks/bench_overhead.py [--rounds 3] [--script benchmarks/scripts/steady.py]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SCRIPT = Path(__file__).with_name("scripts") / "steady.py"


def last_line(command: list[str]) -> dict[str, float]:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr[-2000:])
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return json.loads(lines[-1])


def blocks_ms(folder: Path) -> float:
    """Median of the compiled blocks, ms per step, straight from the collector's events."""
    per_step = [
        event["duration_ms"] / event["steps"]
        for path in (folder / "raw" / "cold").glob("events-*.jsonl")
        for event in map(json.loads, path.read_text().splitlines())
        if event["event"] == "block" and event["stance"] == "compiled" and event["steps"] >= 16
    ]
    return statistics.median(per_step)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--script", type=Path, default=SCRIPT)
    args, rest = parser.parse_known_args()
    script = [str(args.script), *rest]
    bare, tail, blocks = [], [], []
    for round_ in range(args.rounds):
        bare.append(last_line([sys.executable, *script])["step_ms"])
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "run"
            command = [sys.executable, "-m", "traceview", "collect", "--run-to-end"]
            tail.append(last_line([*command, "-o", str(folder), *script])["step_ms"])
            blocks.append(blocks_ms(folder))
        print(
            f"round {round_}: bare {bare[-1]:.4f} ms, with traceview after the plan "
            f"{tail[-1]:.4f} ms, in compiled blocks {blocks[-1]:.4f} ms",
            flush=True,
        )
    own = statistics.median(bare)
    for name, figures in (("after the plan", tail), ("in compiled blocks", blocks)):
        dearer = 100 * (statistics.median(figures) / own - 1)
        print(f"{name}: {dearer:+.2f} % against bare (medians)")


if __name__ == "__main__":
    main()
