"""How fast does a structured log become tables on disk, beside tlparse's pages of the same file?

Makes its own input (see structured_logs.py). Every tool runs as a process of its own, one after the
other, and its time is from start to exit; CPU seconds are those of all its processes and threads.
Memory is the peak of the resident sets of a process and its children, added up every 10 ms. The
line scan is the least that any reader has to do.

    python benchmarks/bench_structured.py [--megabytes 350] [--shape large|small] [--rounds 3]
"""

from __future__ import annotations

import argparse
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from structured_logs import SHAPES, make

OURS = """
import sys
from pathlib import Path
from traceview.parse.damage import Damage
from traceview.parse.structured import read_path, write_tables
path, damage = Path(sys.argv[1]), Damage()
write_tables(read_path(path, path.name, damage), Path(sys.argv[2]))
assert damage.total == 0
"""
SCAN = "import sys\nfor line in open(sys.argv[1], 'rb'): pass"


def run(command: list[str]) -> tuple[float, float, float]:
    """(seconds, CPU seconds, MiB) of a command."""
    start, before, peak = time.perf_counter(), cpu_seconds(), 0
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, stdout=quiet, stderr=quiet)
    while process.poll() is None:
        peak = max(peak, resident(process.pid))
        time.sleep(0.01)
    if process.returncode:
        raise SystemExit(f"{command[0]} failed")
    return time.perf_counter() - start, cpu_seconds() - before, peak / 1024


def cpu_seconds() -> float:
    """Of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def resident(pid: int) -> int:
    """KiB of a process and its children; Linux."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return 0
    own = next((line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")), "0")
    return int(own) + sum(resident(int(child)) for child in children)


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
        for _ in range(args.rounds):
            seconds = {}
            for name, command in commands.items():
                shutil.rmtree(out, ignore_errors=True)
                seconds[name], busy, memory = run(command)
                files = sum(1 for path in out.rglob("*") if path.is_file()) if out.exists() else 0
                speed = log.stat().st_size / 1e6 / seconds[name]
                print(
                    f"{name:10} {seconds[name]:6.2f} s {busy:6.2f} s CPU {speed:6.0f} MB/s"
                    f" {memory:5.0f} MiB {files:6,} files"
                )
            if "tlparse" in seconds:
                print(f"tlparse / traceview: {seconds['tlparse'] / seconds['traceview']:.1f}")


if __name__ == "__main__":
    main()
