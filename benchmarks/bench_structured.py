"""How fast is a structured log read, beside a plain scan of its lines?

Makes its own input: a recorded log repeated to the size asked for.

    python benchmarks/bench_structured.py [--megabytes 100] [--rounds 3]
"""

from __future__ import annotations

import argparse
import gzip
import resource
import tempfile
import time
from pathlib import Path

from traceview.parse.damage import Damage
from traceview.parse.structured import read_file

SOURCE = Path(__file__).resolve().parents[1] / "fixtures" / "structured" / "inductor.log.gz"


def seconds(work) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def scan(path: Path) -> None:
    with path.open("rb") as lines:
        for _ in lines:
            pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    text = gzip.decompress(SOURCE.read_bytes())
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "dedicated_log_torch_trace_repeated.log"
        with path.open("wb") as out:
            for _ in range(max(1, args.megabytes * 1_000_000 // len(text))):
                out.write(text)
        size = path.stat().st_size / 1e6
        for round_ in range(args.rounds):
            lines = seconds(lambda: scan(path))
            ours = seconds(lambda: read_file(path, Damage()))
            print(
                f"round {round_}: {size:.0f} MB, line scan {lines:.2f} s "
                f"({size / lines:.0f} MB/s), all tables {ours:.2f} s ({size / ours:.0f} MB/s)"
            )
    print(f"peak resident set {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
