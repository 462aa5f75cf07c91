"""Are the ceilings that a run measures in 2 s what a tuned copy and a tuned matrix product reach?

On a CUDA device: the collector's own measurement, then the best of many ways to do the same work
(copies by torch and by Triton in several sizes and configurations; products of cuBLAS and cuBLASLt
in several shapes and layouts), then the collector's again. Medians by the device's clock, the L2
cleared before every run.

A product draws so much power that a device keeps its pace only for some 50 ms. The best way is
measured twice: rested, as the collector measures, and after ``SUSTAINED_S`` without a pause.

    python benchmarks/bench_ceilings.py [--seconds 8]
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import torch
import triton
import triton.language as tl

from traceview.collectors.child.ceilings import Way, seconds_of, write_ceilings

RUNS, LAST_RUNS, FINALISTS = 3, 30, 4
REST_S, SUSTAINED_S = 2.0, 1.0
COPY_BYTES = (256 << 20, 1 << 30, 4 << 30)  # read and written together
SHAPES = (
    *((side, side, side) for side in (8192, 4096, 16384)),
    (8192, 8192, 4096), (8192, 8192, 16384), (16384, 8192, 8192), (8192, 16384, 8192),
)  # fmt: skip
#: As in the collector's ceilings, and with TF32.
DTYPES = {
    "bfloat16": (torch.bfloat16, False),
    "float16": (torch.float16, False),
    "float32": (torch.float32, False),
    "float32, TF32": (torch.float32, True),
}


class Tuned(NamedTuple):
    """The best way's amount a second, rested and sustained."""

    how: str
    rested: float
    sustained: float


class Kept:
    """What the collector measures, kept instead of written to a file."""

    def __init__(self) -> None:
        self.found: dict[str, tuple[float, str]] = {}

    def write(self, _event: str, *, kind: str, value: float, **more: object) -> None:
        name = f"{kind} {more['dtype']}" if more["dtype"] else kind
        self.found[name] = (value, f"{more['unit']}, {more['size']}")

    def note(self, what: str, why: object) -> None:
        print(f"not measured: {what}: {why}")


@triton.jit
def _copied(source, target, count, BLOCK: tl.constexpr):
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    tl.store(target + place, tl.load(source + place, mask=inside), mask=inside)


def rate(way: Way, flush: torch.Tensor, runs: int) -> float:
    """Amount a second, by the median of ``runs``, timed as the collector times its own."""
    return way.amount / statistics.median(seconds_of(torch, flush, way.act, runs))


def tuned(ways: Iterator[Way], flush: torch.Tensor, until: float) -> Tuned:
    """The best way found until then, the best ones measured again on a rested device."""
    seen: list[tuple[float, Way]] = []
    for way in ways:
        way.act()  # warms up
        seen.append((rate(way, flush, RUNS), way))
        seen = sorted(seen, key=lambda each: -each[0])[:FINALISTS]
        if time.monotonic() > until:
            break
    rested = []
    for _, way in seen:
        time.sleep(REST_S)
        rested.append((rate(way, flush, LAST_RUNS), way))
    most, best = max(rested, key=lambda each: each[0])
    sustained, end = most, time.monotonic() + SUSTAINED_S
    while time.monotonic() < end:
        sustained = rate(best, flush, LAST_RUNS)
    return Tuned(best.size, most, sustained)


def copies() -> Iterator[Way]:
    for size in COPY_BYTES:
        count, how = size // 8, f"{size >> 20} MiB"
        source = torch.randn(count, device="cuda")
        target = torch.empty_like(source)
        yield Way(partial(target.copy_, source), size, f"copy_, {how}")
        for block, warps in itertools.product((512, 1024, 2048, 4096, 8192), (2, 4, 8, 16)):
            copy = _copied[(triton.cdiv(count, block),)]
            act = partial(copy, source, target, count, BLOCK=block, num_warps=warps)
            yield Way(act, size, f"Triton, {how}, block {block}, {warps} warps")


def products(dtype: torch.dtype) -> Iterator[Way]:
    """cuBLAS's and cuBLASLt's, with each factor row-major (N) and transposed (T)."""
    for (m, n, k), library in itertools.product(SHAPES, ("cublas", "cublaslt")):
        torch.backends.cuda.preferred_blas_library(library)
        for layout in ("NN", "NT", "TN", "TT"):
            a, b = _factor(layout[0], m, k, dtype), _factor(layout[1], k, n, dtype)
            yield Way(partial(torch.mm, a, b), 2.0 * m * n * k, f"{library} {m}x{n}x{k} {layout}")


def _factor(layout: str, rows: int, columns: int, dtype: torch.dtype) -> torch.Tensor:
    if layout == "N":
        return torch.randn(rows, columns, device="cuda", dtype=dtype)
    return torch.randn(columns, rows, device="cuda", dtype=dtype).t()


def measured() -> dict[str, tuple[float, str]]:
    """The collector's figures; those of TF32 beside those of float32."""
    found: dict[str, tuple[float, str]] = {}
    torch.backends.cuda.preferred_blas_library("default")
    for tf32 in (False, True):
        time.sleep(REST_S)
        torch.backends.cuda.matmul.allow_tf32 = tf32
        kept = Kept()
        write_ceilings(torch, kept, device=True)  # type: ignore[arg-type]
        torch.cuda.empty_cache()
        if not tf32:
            found |= kept.found
        elif "matmul float32" in kept.found:
            found["matmul float32, TF32"] = kept.found["matmul float32"]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=8.0, help="of looking for each best way")
    args = parser.parse_args()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    flush = torch.empty(128 << 20, dtype=torch.uint8, device="cuda")
    first = measured()
    best = {"copy": tuned(copies(), flush, time.monotonic() + args.seconds)}
    for name, (dtype, tf32) in DTYPES.items():
        torch.backends.cuda.matmul.allow_tf32 = tf32
        best[f"matmul {name}"] = tuned(products(dtype), flush, time.monotonic() + args.seconds)
    last = measured()
    for name, way in best.items():
        scale = 1e9 if name == "copy" else 1e12
        print(
            f"{name}: tuned {way.rested / scale:.1f} rested, {way.sustained / scale:.1f} sustained"
            f" ({way.how})"
        )
        for ours, unit in (each[name] for each in (first, last) if name in each):
            print(f"    a run's: {ours:.1f} {unit}: {100 * (ours * scale / way.rested - 1):+.1f} %")


if __name__ == "__main__":
    main()
