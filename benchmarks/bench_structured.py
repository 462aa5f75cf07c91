"""How fast does a structured log become tables on disk, beside tlparse's pages of the same file?

Makes its own input (see structured_logs.py). Every tool runs as a process of its own, one after the
other, and its time is from start to exit; CPU seconds are those of all its processes and threads.
Memory is the peak of the resident sets of a process and its children, added up every 10 ms. The
line scan is the least that any reader has to do.

    python benchmarks/bench_structured.py [--megabytes 350] [--shape large|small] [--rounds 3]
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from processes import measured
from structured_logs import SHAPES, make

from traceview.cli.postmortem import ALLOCATOR

OURS = """
import sys
from pathlib import Path
from traceview.parse.cutting import cutting_begun
path = Path(sys.argv[1])
with cutting_begun(path):  # as a post-mortem does: polars is imported meanwhile
    from traceview.parse.damage import Damage
    from traceview.parse.store import Writer, in_pieces
    from traceview.parse.structured import read_path
    damage = Damage()
    out = Path(sys.argv[2])
    out.mkdir(exist_ok=True)
    with Writer(out) as writer:
        for table, frame in in_pieces(read_path(path, path.name, damage)):
            writer.add(table, frame)
assert damage.total == 0
"""
SCAN = "import sys\nfor line in open(sys.argv[1], 'rb'): pass"


def tlparse() -> str | None:
    return shutil.which("tlparse") or shutil.which("tlparse", path=str(Path(sys.executable).parent))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--megabytes", type=int, default=350)
    parser.add_argument("--shape", choices=SHAPES, default="large")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--log", type=Path, help="a log to read instead")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        log = args.log or Path(scratch) / "dedicated_log_torch_trace_made.log"
        if args.log is None:
            print(f"{make(log, args.megabytes, args.shape):,} records, {args.shape}", flush=True)
        out = Path(scratch) / "out"
        commands = {
            "line scan": [sys.executable, "-c", SCAN, str(log)],
            "traceview": [sys.executable, "-c", OURS, str(log), str(out)],
        }
        if binary := tlparse():
            commands["tlparse"] = [binary, str(log), "-o", str(out), "--no-browser"]
        environment = os.environ | dict([ALLOCATOR])  # as a post-mortem sets it
        for _ in range(args.rounds):
            took = {}
            for name, command in commands.items():
                shutil.rmtree(out, ignore_errors=True)
                one = took[name] = measured(command, environment=environment)
                files = sum(1 for path in out.rglob("*") if path.is_file()) if out.exists() else 0
                speed = log.stat().st_size / 1e6 / one.wall_s
                print(
                    f"{name:10} {one.wall_s:6.2f} s {one.cpu_s:6.2f} s CPU {speed:6.0f} MB/s"
                    f" {one.most_bytes / 2**20:5.0f} MiB {files:6,} files"
                )
            if "tlparse" in took:
                times = took["tlparse"].wall_s / took["traceview"].wall_s
                print(f"tlparse / traceview: {times:.1f}")


if __name__ == "__main__":
    main()
