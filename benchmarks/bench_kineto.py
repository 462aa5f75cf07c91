"""Speed and memory of the profiler-trace reader, beside a plain scan of the lines of the same file.

    python benchmarks/bench_kineto.py [--mb 70] [--trace SMALL.json.gz] [--gz]

A big trace is made by repeating a small one with shifted times and renumbered ids; without
``--trace`` the small one is a training step of an MLP that torch's profiler records here.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

# ru_maxrss is handed down from the process that forks; VmHWM starts anew with the program.
PEAK = """
def peak_mb():
    status = open("/proc/self/status").read()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024
"""
READ = (
    PEAK
    + """
import sys, time
from pathlib import Path
from traceview.parse.damage import Damage
from traceview.parse.kineto import read_trace
imports_mb = peak_mb()
start = time.perf_counter()
damage = Damage()
tables = read_trace(Path(sys.argv[1]), "eager", "trace", damage)
wall = time.perf_counter() - start
rows = sum(frame.height for frame in tables.values())
peak = peak_mb()
print(f"{wall:.3f} {peak:.0f} {imports_mb:.0f} {rows} {damage.total}")
"""
)
SCAN = (
    PEAK
    + """
import gzip, sys, time
start = time.perf_counter()
opened = gzip.open if sys.argv[1].endswith(".gz") else open
with opened(sys.argv[1], "rb") as file:
    lines = sum(1 for _ in file)
wall = time.perf_counter() - start
peak = peak_mb()
print(f"{wall:.3f} {peak:.0f} 0 {lines} 0")
"""
)
STEP = re.compile(r"traceview step \d+$")
IDS = ("External id", "correlation", "Sequence number")


def small_trace() -> dict:
    """A recorded training step, eager."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    model = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(8)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with tempfile.TemporaryDirectory() as folder:
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
            for _ in range(3):
                model(torch.randn(32, 64)).sum().backward()
                optimizer.step()
        path = Path(folder, "small.json")
        profiler.export_chrome_trace(str(path))
        return json.loads(path.read_text())


def repeated(trace: dict, megabytes: float, path: Path) -> None:
    """Write ``trace`` again and again in the layout of the C++ exporter."""
    events = [event for event in trace["traceEvents"] if event.get("ph") == "X"]
    first = min(event["ts"] for event in events)
    length = max(event["ts"] + event["dur"] for event in events) - first + 10
    written, turn = 0, 0
    with path.open("w") as file:
        file.write('{\n  "schemaVersion": 1,\n  "traceEvents": [\n')
        while written < megabytes * 1e6:
            texts = [_shifted(event, turn, length) for event in events]
            written += file.write((",\n" if turn else "") + ",\n".join(texts))
            turn += 1
        file.write('\n  ],\n  "traceName": "big"\n}\n')


def _shifted(event: dict, turn: int, length: float) -> str:
    arguments = dict(event.get("args", {}))
    for name in IDS:
        if isinstance(arguments.get(name), int) and arguments[name] > 0:
            arguments[name] += turn * 1_000_000
    head = {key: value for key, value in event.items() if key not in ("ts", "dur", "args")}
    if STEP.match(head["name"]):
        head["name"] += f"{turn:04}"
    text = json.dumps(head)[1:-1]
    ts = event["ts"] + turn * length
    times = f'"ts": {ts:.3f}, "dur": {event["dur"]:.3f}'
    return f'  {{\n    {text},\n    {times},\n    "args": {json.dumps(arguments)}\n  }}'


def measured(program: str, path: Path) -> list[float]:
    output = subprocess.run(
        [sys.executable, "-c", program, str(path)], check=True, capture_output=True, text=True
    )
    return [float(word) for word in output.stdout.split()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mb", type=float, default=70)
    parser.add_argument("--trace", type=Path)
    parser.add_argument("--gz", action="store_true")
    options = parser.parse_args()
    if options.trace is None:
        trace = small_trace()
    else:
        data = options.trace.read_bytes()
        trace = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "big.json")
        repeated(trace, options.mb, path)
        megabytes = path.stat().st_size / 1e6
        if options.gz:
            packed = path.with_suffix(".json.gz")
            packed.write_bytes(gzip.compress(path.read_bytes(), 1))
            path = packed
        print(f"{megabytes:.1f} MB{' (packed)' if options.gz else ''}")
        print(
            f"{'':12} {'wall s':>8} {'MB/s':>8} {'peak MB':>8} {'imports':>10} {'rows':>9} damage"
        )
        for name, program in (("line scan", SCAN), ("read_trace", READ)):
            wall, peak, imports, rows, damage = measured(program, path)
            print(
                f"{name:12} {wall:8.2f} {megabytes / wall:8.1f} {peak:8.0f} {imports:10.0f} "
                f"{rows:9.0f} {damage:.0f}"
            )


if __name__ == "__main__":
    main()
