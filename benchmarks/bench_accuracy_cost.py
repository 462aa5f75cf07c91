"""What ``traceview accuracy`` costs for a small transformer, next to compiling one of its steps.

The step's compile time is that of the first compiled forward and backward in a plain process,
with an empty cache. Times are CPU seconds of all processes, since the machine may do other work,
and wall seconds. ``--bisect`` is given a script whose gelu is decomposed by a wrong formula.

    python benchmarks/bench_accuracy_cost.py [--layers N] [--times N]
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SCRIPT = """
import time
import torch
from torch import nn

{fault}
torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(128, 4, 512, 0.0, "gelu", batch_first=True, norm_first=True)
net = nn.TransformerEncoder(layer, {layers}, enable_nested_tensor=False)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
compiled = torch.compile(net)


def step():
    optimizer.zero_grad()
    compiled(torch.randn(8, 64, 128)).square().mean().backward()
    optimizer.step()


def spent():
    times = __import__("os").times()
    return sum(times[:4])


cpu, wall = spent(), time.perf_counter()
step()
if {once}:
    from torch._inductor.async_compile import shutdown_compile_workers

    first = time.perf_counter() - wall
    shutdown_compile_workers()  # their time counts once they end
    print(spent() - cpu, first)
else:
    for _ in range(500):
        step()
"""
FAULT = """
def gelu(x, approximate="none"):
    return x * torch.sigmoid(1.6 * x)

from torch._inductor.decomposition import decompositions
decompositions[torch.ops.aten.gelu.default] = gelu
"""


def run(words: list[str], cache: Path) -> tuple[str, float, float]:
    """What it prints, and its CPU and wall seconds."""
    env = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(cache)}
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=env)
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done.stdout, cpu, wall


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--times", type=int, default=3)
    args = parser.parse_args()
    found: dict[str, list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        texts = {"step": ("", 1), "right": ("", 0), "wrong": (FAULT, 0)}
        for name, (fault, once) in texts.items():
            text = SCRIPT.format(fault=fault, layers=args.layers, once=once)
            (folder / f"{name}.py").write_text(text, encoding="utf-8")
        accuracy = [sys.executable, "-m", "traceview", "accuracy", "--force", "-o", f"{folder}/run"]
        commands = {
            "compiling one step": [sys.executable, f"{folder}/step.py"],
            "accuracy": [*accuracy, f"{folder}/right.py"],
            "accuracy --record-mb 0": [*accuracy, "--record-mb", "0", f"{folder}/right.py"],
            "accuracy --bisect": [*accuracy, "--bisect", f"{folder}/wrong.py"],
        }
        for _ in range(args.times):
            for name, words in commands.items():
                printed, cpu, wall = run(
                    words, Path(tempfile.mkdtemp(dir=folder))
                )  # caches are empty
                if name == "compiling one step":
                    cpu, wall = map(float, printed.split())
                found.setdefault(name, []).append((cpu, wall))
                print(f"{name:<24} {cpu:6.1f} s CPU  {wall:6.1f} s", flush=True)
                if name != "compiling one step":
                    said = [line for line in printed.splitlines() if "Operator" in line]
                    print("\n".join([*printed.splitlines()[:1], *said]) or "IT FAILED")
    base = [statistics.median(each) for each in zip(*found["compiling one step"], strict=True)]
    for name, rows in found.items():
        cpu, wall = (statistics.median(each) for each in zip(*rows, strict=True))
        print(
            f"{name:<24} {cpu / base[0]:5.2f} × in CPU time, {wall / base[1]:5.2f} × in wall time"
        )


if __name__ == "__main__":
    main()
