"""A whole post-mortem, from raw logs to the report: time, memory of all processes, page.

    python benchmarks/bench_postmortem.py job [--files 512] [--megabytes 5] [--keep DIR]
    python benchmarks/bench_postmortem.py log [--megabytes 350] [--shape large|small] [--keep DIR]

``job`` makes the logs of a 64-node job: 512 ranks, each with its own process id, clock and times;
some compile another graph, some are slower, some are cut off. ``log`` is one log of one process,
read side by side with tlparse. Beside each figure stands how long it takes to read the same bytes
and find their lines.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from hashlib import md5
from pathlib import Path
from typing import NamedTuple

import structured_logs
from processes import Measured, measured

_RECORD = re.compile(
    rb"^V(?P<day>\d{4}) (?P<h>\d\d):(?P<m>\d\d):(?P<s>\d\d)(?P<rest>\.\d+) \d+ (?P<tail>[^\n]*)\n"
    rb"(?P<payload>(?:\t[^\n]*\n)*)",
    re.MULTILINE,
)
_TIME = re.compile(rb'(?<="ts": )[\d.]+|(?<="start_time_us": )\d+|(?<="end_time_us": )\d+')
_DIGEST = re.compile(rb'(?<="has_payload": ")\w+')
ENDS = (0, 3)  # well, or with something that was found
DIVERGENT, CUT, SLOW = 37, 29, 53  # every so many ranks


class Made(NamedTuple):
    """One record of the log that all ranks share."""

    day: bytes
    second: int
    rest: bytes
    tail: bytes
    payload: bytes
    timed: bool


def make_job(folder: Path, files: int, megabytes: int) -> None:
    """``files`` logs below ``folder``, a folder a node."""
    base = folder / "base.log"
    structured_logs.make(base, megabytes)
    records = list(_records(base.read_bytes()))
    base.unlink()
    for rank in range(files):
        node = folder / f"node-{rank // 8:02}"
        node.mkdir(exist_ok=True)
        path = node / f"dedicated_log_torch_trace_rank_{rank}_{rank:08x}.log"
        log = b"".join(_of_rank(record, rank) for record in records)
        if rank % CUT == CUT - 1:
            log = log[: int(len(log) * random.Random(rank).uniform(0.3, 0.99))]
        path.write_bytes(log)


def _records(log: bytes) -> Iterator[Made]:
    for found in _RECORD.finditer(log):
        second = int(found["h"]) * 3600 + int(found["m"]) * 60 + int(found["s"])
        payload = found["payload"]
        timed = _TIME.search(found["tail"]) is not None or _TIME.search(payload) is not None
        yield Made(found["day"], second, found["rest"], found["tail"], payload, timed)


def _of_rank(record: Made, rank: int) -> bytes:
    """The record as ``rank`` writes it: its process, its clock, its own graphs here and there."""
    chance = random.Random(rank)
    late = chance.uniform(0, 5) + (20 if rank % SLOW == SLOW - 1 else 0)
    second = record.second + int(late)
    tail, payload = record.tail, record.payload
    if record.timed:

        def shift(found: re.Match[bytes]) -> bytes:
            return b"%d" % (float(found[0]) + late * 1e6)

        tail, payload = _TIME.sub(shift, tail), _TIME.sub(shift, payload)
    if rank % DIVERGENT == DIVERGENT - 1 and b"torch.relu" in payload:
        payload = payload.replace(b"torch.relu", b"torch.tanh")
    if payload is not record.payload:
        digest = md5(payload[1:-1].replace(b"\n\t", b"\n"), usedforsecurity=False).hexdigest()
        tail = _DIGEST.sub(digest.encode(), tail)
    clock = b"%02d:%02d:%02d" % (second // 3600, second // 60 % 60, second % 60)
    ranked = tail.removesuffix(b"}") + b', "rank": %d}' % rank
    head = b"V%b %b%b %d " % (record.day, clock, record.rest, 100 + rank % 8)
    return head + ranked + b"\n" + payload


def with_bytecode(folder: Path) -> dict[str, str]:
    """An environment in which our modules are compiled already, as those of a package are."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    few = folder / "few.log"
    structured_logs.make(few, 1)
    _run_postmortem(few, folder / "few", [], environment)
    return environment


def line_scan(paths: list[Path]) -> float:
    """Seconds to read every byte and find every line end."""
    began = time.perf_counter()
    for path in paths:
        with path.open("rb") as file:
            while block := file.read(1 << 22):
                block.count(b"\n")
    return time.perf_counter() - began


def job(folder: Path, args: argparse.Namespace) -> None:
    logs = folder / "logs"
    if not logs.is_dir():
        logs.mkdir(parents=True)
        make_job(logs, args.files, args.megabytes)
    _postmortem(logs, folder / "run", args.options)


def log(folder: Path, args: argparse.Namespace) -> None:
    path = folder / f"dedicated_log_torch_trace_{args.shape}.log"
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        structured_logs.make(path, args.megabytes, args.shape)
    pages = folder / "tlparse"
    command = ["tlparse", str(path), "-o", str(pages), "--overwrite", "--no-browser"]
    peer = measured(command, folder / "tlparse.txt", good=ENDS)
    print(f"tlparse     {_shown(peer)}  {len(list(pages.rglob('*'))):,} files")
    shutil.rmtree(pages)
    ours = _postmortem(path, folder / "run", args.options)
    print(f"            {peer.wall_s / ours.wall_s:6.1f} times as fast")


def _shown(took: Measured) -> str:
    return f"{took.wall_s:6.1f} s  {took.cpu_s:6.1f} CPU s  {took.most_bytes / 1e6:6.0f} MB"


def _run_postmortem(
    logs: Path, run: Path, options: list[str], environment: dict[str, str]
) -> Measured:
    shutil.rmtree(run, ignore_errors=True)
    command = [sys.executable, "-m", "traceview", "postmortem", str(logs), "-o", str(run), *options]
    return measured(command, run.with_suffix(".txt"), environment, good=ENDS)


def _postmortem(logs: Path, run: Path, options: list[str]) -> Measured:
    environment = with_bytecode(run.parent)
    files = [path for path in logs.rglob("*") if path.is_file()] if logs.is_dir() else [logs]
    size = sum(path.stat().st_size for path in files)
    scan = line_scan(files)
    print(f"{len(files)} files, {size / 1e6:,.0f} MB; line scan {scan:6.1f} s")
    took = _run_postmortem(logs, run, options, environment)
    page = (run / "report.html").stat().st_size
    tables = sum(path.stat().st_size for path in run.rglob("*.parquet"))
    print(
        f"postmortem  {_shown(took)}  {size / 1e6 / took.wall_s:,.0f} MB/s  "
        f"report {page / 1e6:.2f} MB  tables {tables / 1e6:.0f} MB"
    )
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("job", "log"))
    parser.add_argument("--files", type=int, default=512)
    parser.add_argument("--megabytes", type=int)
    parser.add_argument("--shape", choices=structured_logs.SHAPES, default="large")
    parser.add_argument("--keep", type=Path, help="make the logs here, and find them here again")
    parser.add_argument("options", nargs="*", help="options of postmortem, behind --")
    args = parser.parse_args()
    args.megabytes = args.megabytes or (5 if args.what == "job" else 350)
    run: Callable[[Path, argparse.Namespace], None] = job if args.what == "job" else log
    if args.keep:
        run(args.keep, args)
        return
    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder), args)


if __name__ == "__main__":
    main()
