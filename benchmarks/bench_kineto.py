"""Speed and memory of the profiler-trace reader, beside a line scan and Holistic Trace Analysis.

    python benchmarks/bench_kineto.py [--mb 400] [--trace TRACE.json.gz] [--python PEERS]

A big trace is made by repeating a recorded one (a training step on an H200) with shifted times and
renumbered ids. Ours reads it, packed and not, and writes all tables to a folder. ``--python`` is an
interpreter with ``pip install HolisticTraceAnalysis``, which loads it into memory alone. Seconds
are those of reading, without imports; processors' time and memory are of all processes, added up.
"""

from __future__ import annotations

import argparse
import gzip
import os
import re
import sys
import tempfile
from pathlib import Path

from processes import Measured, measured

sys.path.append(str(Path(__file__).resolve().parents[1] / "fixtures"))
import packing

from traceview.cli.postmortem import ALLOCATOR

RUN = Path(__file__).resolve().parents[1] / "fixtures" / "runs" / "gpu-transformer_training.tar.xz"
READ = """
import sys, time
from pathlib import Path
from traceview.parse import kineto
from traceview.parse.damage import Damage
from traceview.parse.files import opened
from traceview.parse.store import Writer, in_pieces
rows, damage, path = 0, Damage(), Path(sys.argv[1])
def counted(batches):
    global rows
    for name, frame in batches:
        rows += frame.height
        yield name, frame
start = time.perf_counter()
out = Path(sys.argv[2])
out.mkdir(exist_ok=True)
with kineto.rest_begun(path) as rest, opened(path) as stream, Writer(out) as writer:
    for table, frame in in_pieces(counted(kineto.read_stream(stream, "trace", damage, rest=rest))):
        writer.add(table, frame)
wall = time.perf_counter() - start
print(f"{wall:.3f} {rows} {damage.total}")
"""
SCAN = """
import sys, time
start = time.perf_counter()
with open(sys.argv[1], "rb") as file:
    lines = sum(1 for _ in file)
print(f"{time.perf_counter() - start:.3f} {lines} 0")
"""
HTA = """
import logging, sys, tempfile, time, warnings
warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis
start = time.perf_counter()
found = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir=tempfile.gettempdir())
wall = time.perf_counter() - start
print(f"{wall:.3f} {len(found.t.get_trace(0))} 0")
"""
SLOT = re.compile(
    rb'"(ts|External id|correlation|id|Sequence number)": (\d+(?:\.\d+)?)|traceview step (\d+)'
)
SPAN = re.compile(rb'"ph": "X".*\n\s*"ts": ([\d.]+)')
EVENTS = b'"traceEvents": ['


def recorded() -> bytes:
    """An eager training step on a GPU."""
    files = packing.files_of(RUN)
    return gzip.decompress(next(files[n] for n in files if re.search(r"/eager-\d+-2\.json", n)))


def repeated(data: bytes, megabytes: float, path: Path) -> None:
    """Write the events of ``data`` again and again, in the layout that they have."""
    start, end = data.index(EVENTS) + len(EVENTS), data.rindex(b"}\n  ]") + 1
    body = data[start:end]
    times = [float(found) for found in SPAN.findall(body)]
    length = max(times) - min(times) + 1000
    texts, slots, at = [], [], 0
    for match in SLOT.finditer(body):
        group = 3 if match[3] else 2
        texts.append(body[at : match.start(group)])
        at = match.end(group)
        slots.append((match[1] == b"ts", float(match[group])))
    texts.append(body[at:])
    with path.open("wb") as file:
        file.write(data[:start])
        written, turn = 0, 0
        while written < megabytes * 1e6:
            parts = [b"," if turn else b"", texts[0]]
            for (is_time, value), text in zip(slots, texts[1:], strict=True):
                moved = value + turn * (length if is_time else 10_000_000 if value > 0 else 0)
                parts += (b"%.3f" % moved if is_time else b"%d" % moved, text)
            written += file.write(b"".join(parts))
            turn += 1
        file.write(data[end:])


def figures(python: str, program: str, read: Path, out: Path) -> tuple[Measured, list[float]]:
    """What a program takes, from start to exit, and what it says: seconds, rows, damage."""
    said = out.with_suffix(".txt")
    environment = os.environ | dict([ALLOCATOR])  # as a post-mortem sets it
    took = measured([python, "-c", program, str(read), str(out)], said, environment)
    return took, [float(word) for word in said.read_text().split()[-3:]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mb", type=float, default=400)
    parser.add_argument("--trace", type=Path)
    parser.add_argument("--python", help="interpreter that has Holistic Trace Analysis")
    options = parser.parse_args()
    data = options.trace.read_bytes() if options.trace else recorded()
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder, "big.json"), Path(folder, "tables")
        out.mkdir()
        repeated(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data, options.mb, path)
        megabytes = path.stat().st_size / 1e6
        packed = Path(folder, "big.json.gz")
        with path.open("rb") as plain, gzip.open(packed, "wb", compresslevel=1) as file:
            while block := plain.read(1 << 24):
                file.write(block)
        jobs = [
            ("line scan", sys.executable, SCAN, path),
            ("tables on disk", sys.executable, READ, path),
            ("same, from .gz", sys.executable, READ, packed),
        ]
        if options.python:
            jobs.append(("HTA, load alone", options.python, HTA, path))
        print(f"{megabytes:.1f} MB, as {packed.stat().st_size / 1e6:.1f} MB packed")
        print(f"{'':16} {'wall s':>8} {'CPU s':>8} {'MB/s':>8} {'peak MB':>8} {'rows':>9} damage")
        for name, python, program, read in jobs:
            took, (wall, rows, damage) = figures(python, program, read, out)
            print(
                f"{name:16} {wall:8.2f} {took.cpu_s:8.2f} {megabytes / wall:8.1f} "
                f"{took.most_bytes / 1e6:8.0f} {rows:9.0f} {damage:.0f}"
            )


if __name__ == "__main__":
    main()
