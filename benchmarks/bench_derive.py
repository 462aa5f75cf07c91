"""Seconds and memory of parsing and deriving everything from big profiler traces, by stage.

    python benchmarks/bench_derive.py [--mb 70] [--run RUN.tar.xz] [--diagnose]

A recorded run is unpacked, and its profiler traces (both stances) are blown up to ``--mb`` in all,
by repeating their steps with shifted times and renumbered ids; everything else of the run, the
compiler's logs too, stays as recorded. Target for 70 MB: 5 s and 600 MB on two cores.
"""

from __future__ import annotations

import argparse
import gzip
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from bench_kineto import repeated
from bench_textlogs import PEAK

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mb", type=float, default=70)
    parser.add_argument("--run", type=Path, default=RUNS / "gpu-transformer_training.tar.xz")
    parser.add_argument("--diagnose", action="store_true", help="build the diagnosis as well")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(options.run) as packed:
            packed.extractall(folder, filter="data")
        run = Path(folder, "run")
        written = blown_up(run, options.mb)
        print(f"{options.run.name}: {written:.1f} MB of traces, {os.cpu_count()} cores")
        subprocess.run([sys.executable, "-c", MEASURE, str(run), str(options.diagnose)], check=True)


if __name__ == "__main__":
    main()
