"""What does a diagnosis of a very large model cost: steps, the script's memory, and what follows?

A transformer of 48 layers trains bare and under ``traceview collect --run-to-end``, in turns. The
step is that of the script's own second half, when the plan is over. Memory is the largest resident
set of any process of the script (``getrusage``), compile workers included. Then the last run folder
is analysed and reported (``bench_after.py``). A machine with a GPU may have torch alone:
``--record`` leaves that out.

    python benchmarks/bench_scale.py [--rounds 2] [--keep DIR] [--record] [--layers 48]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from bench_after import analyse

SCRIPT = Path(__file__).with_name("scripts") / "gpt2_training.py"
_COLLECT = """
import pathlib, sys
from traceview.collectors import CollectOptions, collect

class Quiet:
    say = progress = print

out, target, *args = sys.argv[1:]
options = {"kind": "script", "target": target, "args": tuple(args), "run_to_end": True}
collect(CollectOptions(out=pathlib.Path(out), force=True, **options), Quiet())
"""
#: Runs a command and says what its processes took at most: of all children that were waited for.
_WATCH = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:]).returncode
print('{"peak_kib": %d}' % resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, flush=True)
sys.exit(code)
"""


class Cost(NamedTuple):
    """Host ms of a step in the script's second half, and MiB of its largest process."""

    step_ms: float
    peak_mib: float


def cost(command: list[str]) -> Cost:
    """Of one run of ``command`` with caches of its own."""
    with (
        tempfile.TemporaryDirectory(prefix="scale-") as caches,
        tempfile.TemporaryFile("w+") as said,
    ):
        names = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
        pid = os.posix_spawn(
            sys.executable,
            [sys.executable, "-c", _WATCH, *command],
            os.environ | {name: f"{caches}/{name.lower()}" for name in names},
            file_actions=[(os.POSIX_SPAWN_DUP2, said.fileno(), 1)],
        )
        if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]):
            sys.exit(f"{command} failed")
        said.seek(0)
        found = {}
        for line in said:
            if line.startswith("{"):
                found |= json.loads(line)
    return Cost(found["step_ms"], found["peak_kib"] / 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--layers", default="48")
    parser.add_argument("--width", default="512")
    parser.add_argument("--heads", default="8")
    parser.add_argument("--iters", default="300")
    args, rest = parser.parse_known_args()
    shape = [f"--{name}={getattr(args, name)}" for name in ("layers", "width", "heads", "iters")]
    script = [str(SCRIPT), *shape, *rest]
    with tempfile.TemporaryDirectory() as scratch:
        folder = (args.keep or Path(scratch)) / "scale"
        bare, under = [], []
        for number in range(args.rounds):
            bare.append(cost([sys.executable, *script]))
            under.append(cost([sys.executable, "-P", "-c", _COLLECT, str(folder), *script]))
            print(f"round {number}: bare {bare[-1]}, under traceview {under[-1]}", flush=True)
        for what in Cost._fields:
            before, after = (
                statistics.median(getattr(c, what) for c in side) for side in (bare, under)
            )
            print(f"{what}: {before:.1f} → {after:.1f} ({after / before - 1:+.1%})")
        if not args.record:
            seconds, memory = analyse(folder)
            print(f"own work after the script: {seconds:.2f} s, peak {memory:.0f} MiB")


if __name__ == "__main__":
    main()
