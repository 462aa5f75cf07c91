"""What does the wrapper around a compiled callable cost, once traceview's plan is over?

Two processes of one script differ by more than the wrapper costs, so both sides run in one process:
under ``traceview collect --run-to-end``, after the plan (profiler windows included), chunks of
calls through the wrapper alternate with chunks of calls to what torch.compile gave back. The
median of the ratios of neighbours is printed, with the half of them that lies around it. On a GPU a
chunk is timed by CUDA events, else by the host clock.

With ``--serving`` the process serves as for ``traceview rollout``, where every call is recorded.
On a CPU the times are then the calling thread's on a processor.

    python benchmarks/bench_wrapper.py [--pairs 60] [--device cuda] [--serving]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PLAN_IS_OVER = 1 << 50  # so many calls are granted only then
LONGEST_PLAN_S = 240
MOST_SERVED = 100_000


def chunk_ms(call, x, steps: int, torch, clock=time.perf_counter) -> float:
    """Milliseconds per call of a chunk of ``steps`` calls, the latest result kept."""
    if not x.is_cuda:
        start = clock()
        for _ in range(steps):
            kept = call(x)
        del kept
        return (clock() - start) / steps * 1e3
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    begin.record()
    for _ in range(steps):
        kept = call(x)
    end.record()
    torch.cuda.synchronize()
    del kept
    return begin.elapsed_time(end) / steps


def script(pairs: int, device: str, serving: bool) -> None:
    """The script that is collected: settles, then compares; prints JSON."""
    import torch

    def layers(x):
        for _ in range(3):
            y = x * 0.9 + 0.1
            x = torch.tanh(torch.sigmoid(y) * y) + 0.5 * x
        return x

    compiled = torch.compile(layers)
    x = torch.randn(64, 256, device=device)
    with torch.no_grad():
        cells = [cell.cell_contents for cell in compiled.__closure__]
        gate = next(each for each in cells if hasattr(each, "compiled"))
        give_up = time.monotonic() + LONGEST_PLAN_S
        kept = compiled(x)
        while not serving and gate.region.remaining < PLAN_IS_OVER and time.monotonic() < give_up:
            kept = compiled(x)
        del kept
        plain = gate.compiled
        steps = max(50, round(50.0 / chunk_ms(plain, x, 500, torch)))
        clock = time.thread_time if serving else time.perf_counter
        if serving:
            steps = min(steps, MOST_SERVED // 2 // pairs)
        times = {"wrapped": [], "plain": []}
        for pair in range(pairs):
            order = ("wrapped", "plain") if pair % 2 else ("plain", "wrapped")
            for name in order:
                call = compiled if name == "wrapped" else plain
                times[name].append(chunk_ms(call, x, steps, torch, clock))
    ratios = [a / b for a, b in zip(times["wrapped"], times["plain"], strict=True)]
    figures = {name: statistics.median(found) for name, found in times.items()}
    low, middle, high = statistics.quantiles(ratios, n=4)
    print(json.dumps({**figures, "ratios": (low, middle, high), "pairs": pairs}))


def served(words: list[str], folder: Path) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of the script in a process that serves."""
    from traceview.cli.console import Console
    from traceview.collectors import CollectOptions
    from traceview.collectors.trials import Trials
    from traceview.run import Manifest, Run

    options = CollectOptions(kind="script", target=words[0], args=tuple(words[1:]))
    with Trials(options, Run.create(folder, Manifest(target=words)), Console()) as trials:
        raw, ending = trials.serve("serving", mode="compiled", calls=MOST_SERVED, seconds=600)
    texts = [(raw / name).read_text() for name in ("stdout.txt", "stderr.txt")]
    return ending.code or 0, texts[0], texts[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--serving", action="store_true", help="record every call")
    parser.add_argument("--script", action="store_true", help="be the script that is collected")
    args = parser.parse_args()
    if args.script:
        script(args.pairs, args.device, args.serving)
        return
    me = [str(Path(__file__).resolve()), "--script"]
    me += ["--pairs", str(args.pairs), "--device", args.device]
    me += ["--serving"] if args.serving else []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "run"
        if args.serving:
            code, out, err = served(me, folder)
        else:
            collect = [sys.executable, "-m", "traceview", "collect", "--run-to-end"]
            done = subprocess.run(
                [*collect, "-o", str(folder), *me], capture_output=True, text=True
            )
            code, out, err = done.returncode, done.stdout, done.stderr
    if code:
        sys.exit(err[-2000:])
    found = json.loads([line for line in out.splitlines() if line.startswith("{")][-1])
    low, middle, high = (100 * (ratio - 1) for ratio in found["ratios"])
    print(
        f"a call of {found['plain'] * 1e3:.2f} µs takes {found['wrapped'] * 1e3:.2f} µs through "
        f"the wrapper: {middle:+.2f} % (median of {found['pairs']} pairs; half of them lie between "
        f"{low:+.2f} and {high:+.2f} %)"
    )


if __name__ == "__main__":
    main()
