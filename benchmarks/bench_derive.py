"""Seconds and memory of parsing and deriving everything from big profiler traces, by stage.

    python benchmarks/bench_derive.py [--mb 70] [--run RUN.tar.xz] [--diagnose]
    python benchmarks/bench_derive.py --small [--against CHECKOUT] [--rounds 7] [--run …]

A recorded run is unpacked, and its profiler traces (both stances) are blown up to ``--mb`` in all,
by repeating their steps with shifted times and renumbered ids; everything else of the run, the
compiler's logs too, stays as recorded. Target for 70 MB: 5 s and 600 MB on two cores.

``--small`` leaves the runs as they are: CPU seconds of ``traceview report --refresh`` on each, in a
process that has imported all, and of another checkout's, in turn with it. Median of the rounds.
"""

from __future__ import annotations

import argparse
import gzip
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from bench_kineto import repeated
from bench_textlogs import PEAK

sys.path.append(str(Path(__file__).resolve().parents[1] / "fixtures"))
import packing

RUNS = Path(__file__).resolve().parents[1] / "fixtures" / "runs"
MEASURE = (
    PEAK
    + """
import sys, time
from collections import Counter
from functools import wraps
from pathlib import Path
import traceview.derive as derive
from traceview.diagnosis import diagnose
from traceview.diagnosis.excerpts import source_reader
from traceview.parse import parse_run
from traceview.run import Run

spent, worked = Counter(), Counter()

def timed(name, function):
    @wraps(function)
    def run(*args, **kwargs):
        start, busy = time.perf_counter(), time.process_time()
        try:
            return function(*args, **kwargs)
        finally:
            spent[name] += time.perf_counter() - start
            worked[name] += time.process_time() - busy
    return run

STAGES = ("origin_tables", "profile_tables", "compiler_tables", "limit_tables", "effect_tables")
for name in STAGES:
    setattr(derive, name, timed(name, getattr(derive, name)))
imports = peak_mb()
run = Run.open(Path(sys.argv[1]))
parsed = timed("parse", parse_run)(run)
after_parse = peak_mb()
rows = sum(parsed[name].height for name in ("cpu_ops", "kernels", "kernel_launches"))
tables = timed("derive, all of it", derive.derive)(parsed, {}, source_reader(run, parsed))
after_derive = peak_mb()
if sys.argv[2] == "True":
    timed("diagnose", diagnose)(run, tables)
spent["parse and derive"] = spent["parse"] + spent["derive, all of it"]
worked["parse and derive"] = worked["parse"] + worked["derive, all of it"]
for name in (*STAGES, "derive, all of it", "parse", "parse and derive", "diagnose"):
    print(f"{name:20} {spent[name]:7.2f} s wall {worked[name]:7.2f} s CPU")
print(f"peak {after_derive:.0f} MB ({after_parse:.0f} after parsing, {imports:.0f} after imports), "
      f"{rows} rows of traces, at the end {peak_mb():.0f} MB")
"""
)

SMALL = ("bad-gb_item", "healthy-mlp_training", "bad-ind_scalar_loop", "gpu-pointwise",
         "gpu-transformer_training")  # fmt: skip
REPORT = """
import contextlib, io, os, sys, time
from pathlib import Path
from traceview.cli.pipeline import Wanted, explain
from traceview.run import Run

wanted = Wanted(False, False, False, None, (), ())
for line in sys.stdin:
    start = time.process_time()
    with contextlib.redirect_stdout(io.StringIO()):
        explain(Run.open(Path(line.strip())), wanted, wanted.choice(), refresh=True)
    print(time.process_time() - start, flush=True)
"""


def blown_up(run: Path, megabytes: float) -> float:
    """Replace the traces of ``run`` by bigger ones; megabytes in all, unpacked."""
    traces = sorted(run.glob("raw/*/profile/*.json.gz"))
    timed = [trace for trace in traces if "lines" not in trace.name]
    written = 0.0
    for trace in timed:
        small = gzip.decompress(trace.read_bytes())
        plain = trace.with_suffix("")
        repeated(small, megabytes / len(timed), plain)
        written += plain.stat().st_size / 1e6
        trace.write_bytes(gzip.compress(plain.read_bytes(), 1))
        plain.unlink()
    return written


def reporter(checkout: Path, folder: Path) -> subprocess.Popen[str]:
    """A process that reports on the run folders it is given, by the code of ``checkout``."""
    package = folder / "traceview"
    package.mkdir(parents=True)
    rooms = (checkout / "collectors", checkout / "reports")
    for part in (*(checkout / "traceview").iterdir(), *rooms):
        (package / part.name).symlink_to(part)
    return subprocess.Popen(
        [sys.executable, "-c", REPORT],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def small_runs(archives: list[Path], checkouts: list[Path], rounds: int) -> None:
    """Print the CPU seconds of a report on each run as recorded, by the code of each checkout."""
    with tempfile.TemporaryDirectory() as folder:
        reporters = [
            reporter(checkout, Path(folder, f"code{n}")) for n, checkout in enumerate(checkouts)
        ]
        for archive in archives:
            run = Path(folder, archive.name)
            packing.unpack(archive, run)
            taken: list[list[float]] = [[] for _ in reporters]
            for _ in range(rounds + 1):
                for process, times in zip(reporters, taken, strict=True):
                    process.stdin.write(f"{run / 'run'}\n")
                    process.stdin.flush()
                    times.append(float(process.stdout.readline()))
            medians = [statistics.median(times[1:]) for times in taken]  # the first warms up
            name = archive.name.removesuffix(".tar.xz")
            print(f"{name:32}", *(f"{median:7.3f} s CPU" for median in medians))
        for process in reporters:
            process.stdin.close()
            process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mb", type=float, default=70)
    parser.add_argument("--run", type=Path)
    parser.add_argument("--diagnose", action="store_true", help="build the diagnosis as well")
    parser.add_argument("--small", action="store_true", help="reports on runs as recorded")
    parser.add_argument("--against", type=Path, help="with --small: another checkout")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    if options.small:
        named = [options.run] if options.run else [RUNS / f"{name}.tar.xz" for name in SMALL]
        checkouts = [path for path in (options.against, RUNS.parents[1]) if path]
        small_runs(named, checkouts, options.rounds)
        return
    options.run = options.run or RUNS / "gpu-transformer_training.tar.xz"
    with tempfile.TemporaryDirectory() as folder:
        packing.unpack(options.run, Path(folder))
        run = Path(folder, "run")
        written = blown_up(run, options.mb)
        print(f"{options.run.name}: {written:.1f} MB of traces, {os.cpu_count()} cores")
        subprocess.run([sys.executable, "-c", MEASURE, str(run), str(options.diagnose)], check=True)


if __name__ == "__main__":
    main()
