"""
## What it finds
A step that spends nearly all its time in matrix products, convolutions or attention, in eager and
compiled alike.

## Why it costs
It costs nothing: those run in the same library kernels either way, so torch.compile has next to
nothing to fuse. A speedup near 1.0× is expected here, and not a failure.

## Evidence
GEMM, convolution and attention are at least 70 % of the busy time in both profiler windows, busy
time is at least 70 % of the step, and the step's time changes by less than 10 %. Where the device's
ceilings were measured, how close these kernels come to them. What bf16, TF32, another memory format
or another backend of attention saves is measured on the step's own shapes at the run's end.

## What to do
Use faster arithmetic (bf16, fp16, TF32), or larger batches. `mode="max-autotune-no-cudagraphs"`
lets Triton's GEMMs compete with the library's on a GPU.

## Settings
- `least_share`: part of the busy time that library kernels must take in both stances.
- `most_change`: relative change of the step's time from which the rule is silent.

## References
- https://docs.pytorch.org/docs/stable/generated/torch.compile.html
- https://docs.pytorch.org/docs/stable/torch.compiler_inductor_profiling.html
- torch/_inductor/kernel/mm.py
- https://github.com/pytorch/pytorch/issues/119611
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Row,
    Tables,
    first_rank,
    milliseconds,
    percent,
    plural,
    ratio,
    rows,
    slowdown,
)
from traceview.words.names import category
from traceview.words.text import listed

CODE = "TV410"
NEEDS = frozenset({"accounting", "speedups"})
SEVERITIES = ("info",)
FOLLOWS = frozenset({"ind-tf32-off", "ind-extern-dominated", "ind-slow-kernel"})

#: With 30 % left for everything else, even fusing all of that away could not reach 1.5×.
LEAST_SHARE = 0.70
#: A step that waits or runs Python for longer is bound by that, whatever its kernels are.
FEWEST_BUSY_SHARE = 0.70
#: A larger change than this needs an explanation of its own.
MOST_CHANGE = 0.10
#: Part of the library kernels' time whose floor must be known to compare them with it.
MOST_KNOWN = 0.90
#: A way that saves less of the library's time is not worth a change.
LEAST_GAIN = 0.05
_LIBRARY = ("gemm", "convolution", "attention")


def check(
    tables: Tables, *, least_share: float = LEAST_SHARE, most_change: float = MOST_CHANGE
) -> Iterator[Finding]:
    """At most one finding: the step as a whole."""
    change = slowdown(tables)
    if change is None or abs(change - 1) >= most_change:
        return
    # Library kernels' part of the busy time.
    shares = []
    for stance in ("eager", "compiled"):
        accounts = first_rank(rows(tables, "accounting", stance=stance))
        busy = [row for row in accounts if row["kind"] == "busy"]
        step, total = (sum(row["ms"] or 0.0 for row in part) for part in (accounts, busy))
        if not total or total < FEWEST_BUSY_SHARE * step:
            return
        library = sum(row["ms"] or 0.0 for row in busy if row["category"] in _LIBRARY)
        shares.append(library / total)
    if min(shares) < least_share:
        return
    eager, compiled = shares

    # What these kernels would take at the device's ceilings, if that is known of most of them.
    limits = first_rank(rows(tables, "kernel_limits", stance="compiled"))
    mine = [row for row in limits if row["category"] in _LIBRARY]
    known = [row for row in mine if row["of_ceiling"] is not None]
    ms, total = (sum(row["ms"] for row in part) for part in (known, mine))
    at_ceiling = []
    if total and ms >= MOST_KNOWN * total:
        floor = milliseconds(sum(row["floor_ms"] for row in known))
        text = f"compiled: {milliseconds(ms)} in them, {floor} at the measured ceilings"
        at_ceiling.append(Evidence(text, "kernel_limits"))
    faster, what_to_do = _other_ways(tables)
    at_ceiling += faster
    yield Finding(
        code=CODE,
        rule="ap-gemm-bound",
        severity="info",
        title=(
            f"{percent(compiled)} of the busy time is matrix products: little for compiling to gain"
        ),
        explanation=(
            "GEMM, convolution and attention run in the same library kernels in eager and compiled "
            f"code, so a speedup near 1.0× is expected. This step's is {ratio(1 / change)}."
        ),
        cost=Cost(about="nothing is lost"),
        confidence="measured",
        location=None,
        evidence=(
            Evidence(f"eager: {percent(eager)} of the busy time", "accounting"),
            Evidence(f"compiled: {percent(compiled)} of the busy time", "accounting"),
            *at_ceiling,
        ),
        what_to_do=what_to_do,
        remedy=_settings(tables, _best_way(_measured_ways(tables))),
    )


def _other_ways(tables: Tables) -> tuple[list[Evidence], str]:
    """What other ways to do the step's library work gain, as measured, and what to do."""
    gains = _measured_ways(tables)
    best = _best_way(gains)
    if best is None:
        return [], (
            "Nothing is wrong. Faster arithmetic (bf16, fp16, TF32) or larger batches change this "
            'step; on a GPU, mode="max-autotune-no-cudagraphs" lets Triton\'s GEMMs compete.'
        )
    if best["share"] < LEAST_GAIN:
        ways = listed(sorted({row["way"] for row in gains}))
        return [], (
            f"Nothing is wrong, and {ways} gain nothing on this step's shapes (measured): only "
            "larger batches or less work change it."
        )
    text = (
        f"{best['way']} on {plural(best['shapes'], 'shape')} of this step: "
        f"{milliseconds(best['ms'])} instead of {milliseconds(best['base_ms'])}"
    )
    return [Evidence(text, "shape_gains")], (
        f"Nothing is wrong. {best['way']} saves {percent(best['share'])} of the "
        f"{category(best['kind'])} time, measured on this step's shapes. Larger batches may change "
        "it as well."
    )


def _measured_ways(tables: Tables) -> list[Row]:
    return [row for row in first_rank(rows(tables, "shape_gains")) if row["kind"] in _LIBRARY]


def _best_way(gains: list[Row]) -> Row | None:
    return max(gains, key=lambda row: row["base_ms"] - row["ms"], default=None)


def _settings(tables: Tables, best: Row | None) -> tuple[str, ...]:
    """The setting that has the step's library calls take another way; none for their operands."""
    if best is None:  # not measured
        on_cpu = {row["device_name"] for row in rows(tables, "runs")} == {"cpu"}
        return () if on_cpu else ("mode=max-autotune-no-cudagraphs",)
    way, kind = best["way"], best["kind"]
    if best["share"] < LEAST_GAIN or way == "contiguous":
        return ()
    if way == "bfloat16":
        return ("autocast=bfloat16",)
    if way == "channels last":
        return ("channels_last",)
    if way == "TF32":
        if kind == "convolution":
            return ("torch.backends.cudnn.allow_tf32=True",)
        return ("float32_matmul_precision=high",)
    return (f"sdpa={way.upper().replace(' ', '_')}",)
