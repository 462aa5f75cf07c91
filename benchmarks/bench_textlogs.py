"""Speed and memory of the text-log reader, beside a plain scan of the lines of the same file.

    python benchmarks/bench_textlogs.py [--mb 1000] [--prefix none|rank|time|pod ...] [--stderr]

The log is made of the recorded ones in fixtures/textlogs, again and again under other process ids,
with as many bytes of other people's lines between them: trainers, NCCL, progress bars, tracebacks.
``--prefix`` puts what launchers and collectors write before every line. All tables go to a folder.
CPU seconds are also those of the process that finds the messages; its memory is another 25 MB.
"""

from __future__ import annotations

import argparse
import gzip
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

RECORDED = Path(__file__).resolve().parents[1] / "fixtures" / "textlogs"
# ru_maxrss is handed down from the process that forks; VmHWM starts anew with the program.
PEAK = """
import resource, time
def peak_mb():
    status = open("/proc/self/status").read()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024
def cpu_s():
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime
"""
READ = (
    PEAK
    + """
import sys, time
from pathlib import Path
from traceview.inputs import find
from traceview.parse.damage import Damage
from traceview.reading.mapping import Log, parse
imports_mb, start, before, damage, rows = peak_mb(), time.perf_counter(), cpu_s(), Damage(), 0
out = Path(sys.argv[2])
(source,) = find([sys.argv[1]]).sources
for number, (name, frame) in enumerate(parse(Log(source, "logs", damage))):
    frame.write_parquet(out / f"{name}.{number}.parquet", compression_level=1)
    rows += frame.height
wall, cpu = time.perf_counter() - start, cpu_s() - before
print(f"{wall:.3f} {cpu:.3f} {peak_mb():.0f} {imports_mb:.0f} {rows} {damage.total}")
"""
)
SCAN = (
    PEAK
    + """
import sys, time
start, before = time.perf_counter(), cpu_s()
with open(sys.argv[1], "rb") as file:
    lines = sum(1 for _ in file)
wall, cpu = time.perf_counter() - start, cpu_s() - before
print(f"{wall:.3f} {cpu:.3f} {peak_mb():.0f} 0 {lines} 0")
"""
)
PID = re.compile(rb"(?<=\d\d:\d\d:\d\d\.\d{6} )\d+(?= torch/)")
FOREIGN = (
    b"[2026-11-21 10:22:01,123][trainer.py:88][INFO] step=%d loss=2.3114 lr=3.0e-04 tok/s=41332\n",
    b"INFO:root:epoch 3 iteration %d: gradient norm 0.8812, skipped 0, time per step 0.213 s\n",
    b"node-17:4711:4902 [3] NCCL INFO Channel %d/0 : 0[0] -> 1[1] via P2P/CUMEM\n",
    b"\r 37%%|###7      | %d/1000 [02:11<03:43,  2.81it/s]\n",
    b'Traceback (most recent call last):\n  File "/w/data.py", line %d, in __getitem__\nKeyError\n',
    b"WARNING worker %d: queue is empty, waiting for the data loader\n",
)
PREFIXES = {
    "none": b"",
    "rank": b"[rank%(rank)d]: ",
    "time": b"2026-11-21T10:%(minute)02d:%(second)02d.123456Z ",
    "pod": b"2026-11-21 10:%(minute)02d:%(second)02d trainer-%(rank)d ",
}


def recorded(kind: str) -> list[bytes]:
    """Lines of all recorded logs, one after the other."""
    files = sorted(RECORDED.glob(f"*.{kind}.txt.gz"))
    return b"".join(gzip.decompress(path.read_bytes()) for path in files).splitlines(keepends=True)


def mixed(lines: list[bytes], dice: random.Random) -> Iterator[bytes]:
    """Runs of ``lines``, with runs of foreign ones between them: as many bytes of each."""
    ours = theirs = at = 0
    while at < len(lines):
        run = lines[at : at + dice.randrange(1, 24)]
        at += len(run)
        ours += sum(map(len, run))
        yield from run
        while theirs < ours:
            line = dice.choice(FOREIGN) % dice.randrange(100_000)
            theirs += len(line)
            yield line


def make(path: Path, megabytes: float, prefix: str, kind: str) -> None:
    dice = random.Random(1)
    units = [list(mixed(recorded(kind), dice)) for _ in range(4)]
    written = turn = 0
    with path.open("wb") as file:
        while written < megabytes * 1e6:
            lines = units[turn % len(units)]
            known = {b"rank": turn % 8, b"minute": turn // 60 % 60, b"second": turn % 60}
            before = PREFIXES[prefix] % known
            text = b"".join(before + line for line in lines)
            written += file.write(PID.sub(b"%d" % (10_000 + turn), text))
            turn += 1


def measured(program: str, *arguments: str) -> list[float]:
    command = [sys.executable, "-c", program, *arguments]
    output = subprocess.run(command, check=True, capture_output=True, text=True)
    return [float(word) for word in output.stdout.split()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mb", type=float, default=1000)
    parser.add_argument("--prefix", nargs="*", choices=PREFIXES, default=["none", "pod"])
    parser.add_argument("--stderr", action="store_true", help="captures of stderr instead of logs")
    options = parser.parse_args()
    kind = "stderr" if options.stderr else "torch_logs"
    heads = ("wall s", "MB/s", "cpu s", "peak MB", "imports", "rows", "damage")
    print(f"{'':22}" + "".join(f"{head:>9}" for head in heads))
    for prefix in options.prefix:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "big.log")
            make(path, options.mb, prefix, kind)
            megabytes = path.stat().st_size / 1e6
            out = Path(folder, "tables")
            out.mkdir()
            for name, program in (("line scan", SCAN), ("tables on disk", READ)):
                wall, cpu, *counts = measured(program, str(path), str(out))
                times = f"{wall:9.2f}{megabytes / wall:9.1f}{cpu:9.2f}"
                print(f"{prefix:6} {name:15}{times}" + "".join(f"{n:9.0f}" for n in counts))


if __name__ == "__main__":
    main()
