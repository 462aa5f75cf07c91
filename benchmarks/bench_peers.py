"""Busy, idle and category totals of our tables beside what other tools say of the same traces.

    python benchmarks/bench_peers.py [--python PEERS] [RUN.tar.xz ...]

Peers are Holistic Trace Analysis (``pip install HolisticTraceAnalysis``) and TraceLens
(https://github.com/AMD-AGI/TraceLens), looked for in the interpreter ``--python``; what is not
there is skipped. Without runs, all recordings on a GPU. Every figure is of the whole trace, from
the first device event to the last. Why some differ is said in docs/accounting.md; the two lines
``HTA, ns`` and ``HTA, ns, repaired`` take away one known reason each.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import polars as pl

sys.path.append(str(Path(__file__).resolve().parents[1] / "fixtures"))
import packing

from traceview.derive.intervals import length
from traceview.parse import parse_run
from traceview.run import Run

RUNS = Path(__file__).resolve().parents[1] / "fixtures" / "runs"
STANCES = ("eager", "compiled")
#: Within this the figures agree.
AGREES = 0.01
QUIET = """
import json, logging, sys, warnings
warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
"""
TRACELENS = (
    QUIET
    + """
from TraceLens import TreePerfAnalyzer
analyzer = TreePerfAnalyzer.from_file(sys.argv[1])
timeline = analyzer.get_df_gpu_timeline().set_index("type")["time ms"]
launchers = analyzer.get_df_kernel_launchers()
groups = launchers.groupby("op category")["total_direct_kernel_time"].sum() / 1e3
groups = {name: float(ms) for name, ms in groups.items()}
known = {"gemm": "GEMM", "convolution": "CONV", "normalization": "NORM", "generated": "triton"}
found = {name: sum(ms for key, ms in groups.items() if key.startswith(theirs))
         for name, theirs in known.items()}
found |= {"busy": float(timeline["busy_time"]), "idle": float(timeline["idle_time"])}
print(json.dumps(found))
"""
)
HTA = (
    QUIET
    + """
import tempfile
from hta.trace_analysis import TraceAnalysis
analysis = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir=tempfile.gettempdir())
found = analysis.get_temporal_breakdown(visualize=False).iloc[0]
print(json.dumps({
    "busy": float(found["compute_time(us)"] + found["non_compute_time(us)"]) / 1e3,
    "idle": float(found["idle_time(us)"]) / 1e3,
}))
"""
)
#: Without it Holistic Trace Analysis rounds starts up and ends down to whole microseconds.
NOT_ROUNDED = {"HTA_DISABLE_NS_ROUNDING": "1"}


class Peer(NamedTuple):
    """A tool: module that must be there, program, environment, whether its trace is repaired."""

    name: str
    module: str
    program: str
    environment: dict[str, str]
    repaired: bool = False


PEERS = (
    Peer("TraceLens", "TraceLens", TRACELENS, {}),
    Peer("HTA", "hta", HTA, {}),
    Peer("HTA, ns", "hta", HTA, NOT_ROUNDED),
    Peer("HTA, ns, repaired", "hta", HTA, NOT_ROUNDED, repaired=True),
)


def ours(kernels: pl.DataFrame) -> dict[str, float]:
    """Milliseconds of table ``kernels`` as the accounting counts them, but for a whole window.

    (The accounting itself leaves out the window's first step, which no peer can.)
    """
    ends = kernels["start_ns"] + kernels["duration_ns"]
    busy = length(zip(kernels["start_ns"], ends, strict=True))
    label = pl.col("category").str.replace(r"^generated_.*", "generated")
    groups = kernels.group_by(label).agg(pl.col("duration_ns").sum())
    found = {name: ns / 1e6 for name, ns in groups.iter_rows()}
    span = ends.max() - kernels["start_ns"].min()
    return found | {"busy": busy / 1e6, "idle": (span - busy) / 1e6}


def repaired(trace: Path, folder: Path) -> Path:
    """A copy in which Inductor's host events no longer carry ``stream``, as device events do."""
    data = json.loads(gzip.decompress(trace.read_bytes()))
    for event in data["traceEvents"]:
        if event.get("cat") == "cpu_op":
            event.get("args", {}).pop("stream", None)
    path = folder / f"repaired-{trace.name}"
    path.write_bytes(gzip.compress(json.dumps(data).encode(), 1))
    return path


def said_by(python: str, peer: Peer, trace: Path) -> dict[str, float] | str:
    """A peer's figures, or why there are none."""
    done = subprocess.run(
        [python, "-c", peer.program, str(trace)],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, **peer.environment},
        check=False,
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        return lines[-1][:60]
    return json.loads(done.stdout.strip().splitlines()[-1])


def available(python: str) -> list[Peer]:
    """The peers that ``python`` can import; of the others it is said that they are skipped."""
    probe = "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)"
    found = []
    for peer in PEERS:
        if subprocess.run([python, "-c", probe, peer.module], check=False).returncode:
            print(f"{peer.name}: not installed for {python}, skipped")
        else:
            found.append(peer)
    return found


def compared(
    mine: dict[str, float], run: str, stance: str, trace: Path, python: str, peers: list[Peer]
) -> None:
    """Print one line for each figure that a peer has, and whether it differs from ``mine``."""
    for peer in peers:
        read = repaired(trace, trace.parent) if peer.repaired else trace
        theirs = said_by(python, peer, read)
        head = f"{run:26} {stance:9} {peer.name:18}"
        if isinstance(theirs, str):
            print(f"{head} fails: {theirs}")
            continue
        for what, ms in theirs.items():
            own = mine.get(what, 0.0)
            if not own and not ms:
                continue
            off = ms / own - 1 if own else float("inf")
            mark = "" if abs(off) <= AGREES else "  differs"
            print(f"{head} {what:14} {own:10.4f} {ms:10.4f} {off:+9.2%}{mark}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="*", type=Path)
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    peers = available(options.python)
    if not peers:
        return
    print(f"{'run':26} {'stance':9} {'peer':18} {'what':14} {'ours ms':>10} {'theirs ms':>10}")
    for archive in options.runs or sorted(RUNS.glob("gpu-*.tar.xz")):
        with tempfile.TemporaryDirectory() as folder:
            packing.unpack(archive, Path(folder))
            run = Run.open(Path(folder, "run"))
            kernels = parse_run(run)["kernels"]
            for stance in STANCES:
                for trace in sorted(Path(folder).glob(f"run/raw/*/profile/{stance}-*.json.gz")):
                    if "-lines" in trace.name:
                        continue
                    name = archive.name.removesuffix(".tar.xz")
                    mine = ours(kernels.filter(stance=stance))
                    compared(mine, name, stance, trace, options.python, peers)


if __name__ == "__main__":
    main()
