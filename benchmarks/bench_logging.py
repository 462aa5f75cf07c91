"""How much dearer is compiling for what traceview asks torch to record, kind by kind?

One process compiles the same training step again and again, with nothing to find in Inductor's
caches, kinds by turns, so that all of them meet the same machine. Figures are CPU seconds, with the
C++ compiler's, by torch's own timers with the CPU's clock in place of the wall's.

The C++ compiler runs only for ``--kernels``, which compares kernels with and without the
profiler's ranges in them (TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE, which traceview does not ask
for): else each source is compiled once, and what is compared is all the rest.

    python benchmarks/bench_logging.py [--rounds 8] [--kinds KIND/KIND] [--kernels]
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import sys
import tempfile
import time
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from traceview.collectors.child.logs import quiet_stderr
from traceview.collectors.passes import LOGS

#: A phase is what its timers say less what other phases have of it (torch/_dynamo/utils.py).
PHASES = {
    "dynamo": (("_compile.compile_inner",), ("OutputGraph.call_user_compiler",)),
    "aot": (
        ("OutputGraph.call_user_compiler", "compile_fx.<locals>.bw_compiler"),
        ("compile_fx_inner",),
    ),
    "lowering": (("compile_fx_inner",), ("GraphLowering.compile_to_fn",)),
    "scheduling": (("Scheduler.__init__",), ()),
    "codegen": (("GraphLowering.codegen",), ("Scheduler.__init__",)),
    "C++, loading": (("PyCodeCache.load_by_key_path",), ()),
}
LOG_VARIABLES = ("TORCH_TRACE", "TORCH_LOGS", "TORCH_LOGS_OUT")
BARE, TRACE, PROVENANCE, RANGES = "nothing", "TORCH_TRACE", "provenance", "kernel ranges"


def cpu_ns() -> int:
    """Of this process and of its children that have ended."""
    spent = os.times()
    return time.process_time_ns() + int((spent.children_user + spent.children_system) * 1e9)


def kinds(scratch: Path, *, kernels: bool) -> dict[str, dict[str, str]]:
    """What each kind sets; names in capitals are environment variables."""
    if kernels:
        return {BARE: {}, RANGES: {RANGES: "1"}}
    trace = {"TORCH_TRACE": str(scratch / "structured")}
    text = {"TORCH_LOGS_OUT": str(scratch / "text.log")}
    each = {f"TORCH_LOGS={name}": text | {"TORCH_LOGS": name} for name in LOGS}
    logs = text | {"TORCH_LOGS": ",".join(LOGS)}
    return {
        BARE: {},
        TRACE: trace,
        f"{TRACE}, {PROVENANCE}": trace | {PROVENANCE: "1"},
        **each,
        "TORCH_LOGS, all": logs,
        "traceview": trace | logs | {PROVENANCE: "1"},
    }


class Compiler:
    """Compiles the step under one kind of records after another."""

    def __init__(self, torch: Any) -> None:
        import torch._dynamo.utils as dynamo

        names = {name: getattr(time, name) for name in dir(time)} | {"time_ns": cpu_ns}
        dynamo.time = types.SimpleNamespace(**names)
        self._torch, self._timers = torch, dynamo.compilation_time_metrics
        self._rate = 0.0

    def record(self, kind: Mapping[str, str]) -> None:
        """Have torch write these logs from now on, and no others."""
        import torch._inductor.config as inductor
        import torch._logging._internal as logging

        for name in LOG_VARIABLES:
            os.environ.pop(name, None)
        os.environ |= {name: kind[name] for name in LOG_VARIABLES if name in kind}
        logging.LOG_TRACE_HANDLER = None
        logging.trace_log.handlers.clear()
        logging._init_logs()
        inductor.trace.provenance_tracking_level = int(PROVENANCE in kind)
        inductor.cpp.enable_kernel_profile = RANGES in kind

    def spent(self, *, anew: bool) -> dict[str, float]:
        """CPU seconds of one compile by phase; ``anew``: of a source that was not met."""
        self._torch._dynamo.reset()
        gc.collect()  # half a second at a time, now in one kind, now in another
        gc.disable()
        before = {name: sum(values) for name, values in self._timers.items()}
        begin = cpu_ns()
        self._rate += float(anew)
        step(self._torch, self._rate)
        whole = (cpu_ns() - begin) / 1e9
        gc.enable()
        each = {name: sum(values) - before.get(name, 0.0) for name, values in self._timers.items()}
        return {"all": whole} | {
            name: sum(each.get(one, 0.0) for one in of) - sum(each.get(one, 0.0) for one in less)
            for name, (of, less) in PHASES.items()
        }


def step(torch: Any, rate: float) -> None:
    """A small block, forward and backward."""
    functional = torch.nn.functional
    linear, norm = torch.nn.Linear, torch.nn.LayerNorm
    block = torch.nn.ModuleDict({"up": linear(32, 64), "down": linear(64, 32), "n": norm(32)})

    def loss(x: Any) -> Any:
        for scale in (1.0, 0.5, 0.25):
            y = block["down"](functional.gelu(block["up"](x)))
            x = block["n"](x + scale * y) * (rate + 1)
        return x.softmax(-1).square().mean()

    torch.compile(loss)(torch.randn(16, 32)).backward()


def show(found: dict[str, list[dict[str, float]]]) -> None:
    """Medians; the last column is the median over rounds of kind less nothing."""
    columns = ["all", *PHASES]
    print(f"\n| CPU s of a compile | {' | '.join(columns)} | more |")
    print("| --- " * (len(columns) + 2) + "|")
    for kind, rounds in found.items():
        cells = " | ".join(f"{statistics.median(r[name] for r in rounds):.3f}" for name in columns)
        pairs = zip(rounds, found[BARE], strict=True)
        more = 100 * (statistics.median(one["all"] / bare["all"] for one, bare in pairs) - 1)
        print(f"| {kind} | {cells} | {more:+.1f} % |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--kernels", action="store_true", help="what ranges in C++ kernels cost")
    parser.add_argument("--kinds", help="some of the table's rows, with / between them")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="logging-") as scratch:
        os.environ |= {
            "OMP_NUM_THREADS": "1",
            "TORCHINDUCTOR_CACHE_DIR": str(Path(scratch, "cache")),
            "TORCHINDUCTOR_COMPILE_THREADS": "1",
            "TORCHINDUCTOR_FX_GRAPH_CACHE": "0",
            "TORCHINDUCTOR_AUTOGRAD_CACHE": "0",
        }
        import torch

        quiet_stderr(())
        compiler = Compiler(torch)
        every = kinds(Path(scratch), kernels=args.kernels)
        if args.kinds:
            every = {kind: every[kind] for kind in (BARE, *args.kinds.split("/"))}
        found: dict[str, list[dict[str, float]]] = {kind: [] for kind in every}
        for round_ in range(args.rounds + 1):
            for kind, records in every.items():
                compiler.record(records)
                spent = compiler.spent(anew=args.kernels)
                if round_:  # the first pays for what a process does once
                    found[kind].append(spent)
            print(f"round {round_}", file=sys.stderr, flush=True)
        print(json.dumps({"torch": torch.__version__, "rounds": args.rounds}))
    show(found)


if __name__ == "__main__":
    main()
