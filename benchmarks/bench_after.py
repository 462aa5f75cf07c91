"""What does traceview itself cost after the script has ended: seconds and peak memory?

Analyses a run folder from its raw files (parse, derive, rules, diagnosis, reports) in a process of
its own, and prints the host seconds and the peak resident set, beside the bytes that were read.

    python benchmarks/bench_after.py RUN [--rounds 3]
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path


def analyse(folder: Path) -> tuple[float, float]:
    """(host seconds, peak resident MiB) of one ``traceview report --refresh``."""
    start = time.perf_counter()
    pid = os.posix_spawn(
        sys.executable,
        [sys.executable, "-m", "traceview", "report", "--refresh", str(folder)],
        os.environ,
        file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)],
    )
    _, status, usage = os.wait4(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, 3):
        sys.exit(f"traceview report ended with {code}")
    return time.perf_counter() - start, usage.ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    size = sum(path.stat().st_size for path in (args.run / "raw").rglob("*") if path.is_file())
    print(f"raw files: {size / 1e6:.1f} MB")
    for round_ in range(args.rounds):
        seconds, memory = analyse(args.run)
        print(f"round {round_}: {seconds:.2f} s, peak {memory:.0f} MiB")
    report = args.run / "report.html"
    print(f"report.html: {report.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
