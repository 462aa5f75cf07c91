"""How fast a ticket is made private: megabytes a second of a structured log, and memory.

    python benchmarks/bench_redaction.py [--megabytes 350] [--log FILE]

Reading for what is private, replacing it and the last search are timed apart, in CPU seconds of one
process; memory is the process's peak less what it had before.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("POLARS_MAX_THREADS", "1")

SECRETS = (
    "password=hunter2-{n}-xyz",
    "Authorization: Bearer abc{n}def9ghi8jkl7",
    "hf_{n:034d}",
    "File /home/user{n}name/train.py",
    "https://me:s3cr{n}t@host.example/x",
)
EVERY = 20_000  # lines


def main() -> None:
    """Make the log unless one is given, plant secrets, time the three passes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=350)
    parser.add_argument("--log", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        log = arguments.log or Path(folder) / "whole.log"
        if arguments.log is None:
            maker = Path(__file__).with_name("structured_logs.py")
            size = str(arguments.megabytes)
            subprocess.run([sys.executable, maker, log, "--megabytes", size], check=True)
        _time(_planted(log, Path(folder) / "planted.log"), Path(folder) / "private.log")


def _planted(log: Path, to: Path) -> Path:
    with log.open("rb") as source, to.open("wb") as target:
        for number, line in enumerate(source):
            target.write(line)
            if number % EVERY == 0:
                text = SECRETS[number // EVERY % len(SECRETS)].format(n=number)
                target.write(f"\t{text}\n".encode())
    return to


def _time(log: Path, to: Path) -> None:
    from traceview.ticket.bundle import pieces
    from traceview.ticket.redaction import Redaction

    redaction, size, before = Redaction("standard"), log.stat().st_size, _peak()

    def learn() -> None:
        with log.open("rb") as file:
            for piece in pieces(file):
                redaction.learn(piece)

    def replace() -> None:
        with log.open("rb") as file, to.open("wb") as target:
            for piece in pieces(file):
                target.write(redaction.redacted(piece, log.name).encode("latin-1"))

    def search() -> None:
        with to.open("rb") as file:
            assert not any(map(redaction.leaks, pieces(file)))

    seconds = [_clocked(step, size) for step in (learn, replace, search)]
    print(f"read and replace: {size / 1e6 / sum(seconds[:2]):.0f} MB/s")
    print(f"all three passes: {size / 1e6 / sum(seconds):.0f} MB/s")
    print(f"memory: {(_peak() - before) / 1024:.0f} MiB above {before / 1024:.0f} MiB")
    print("replaced:", ", ".join(f"{kind} {times}" for kind, times, _ in redaction.table()))


def _clocked(step: Callable[[], None], size: int) -> float:
    begun = time.process_time()
    step()
    seconds = time.process_time() - begun
    print(f"{step.__name__:8} {seconds:6.2f} s CPU  {size / 1e6 / seconds:6.0f} MB/s")
    return seconds


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main()
