"""
## What it finds
A speedup that this run could not tell: its interval is so wide that the step may as well be slower
compiled as faster, or that its size says little.

## Why it costs
It costs no time. It means that a decision should not rest on these figures, and that measuring
again may give others.

## Evidence
The 95 % interval of the speedup over pairs of blocks: it holds 1.0 and its ends differ by more
than 10 %, or they differ by more than 35 %. What makes it wide, as far as it was recorded: more
threads than processors, time in which the step's thread was ready and had no processor, blocks of
one stance that differ among themselves.

## What to do
What the cause asks for: no more threads than processors, a machine without other work, inputs of
one size while measuring, locked clocks on a GPU. More pairs of blocks (`--blocks`) narrow the
interval by their square root.

## Settings
- `widest_undecided`: the interval's upper over its lower end, where it holds 1.0, from which it is
  said.
- `widest`: the same where it does not hold 1.0.

## References
- https://docs.pytorch.org/tutorials/recipes/recipes/benchmark.html
- https://docs.pytorch.org/docs/stable/torch.compiler_profiling_torch_compile.html
- torch/utils/benchmark/utils/common.py
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import quantiles

from traceview.rules import _costs
from traceview.rules._rows import Row, first, first_rank, rows
from traceview.rules.finding import Cost, Evidence, Finding, Snippet
from traceview.tables import Tables
from traceview.words.numbers import milliseconds, percent

CODE = "TV903"
NEEDS = frozenset({"speedups"})

WIDEST_UNDECIDED = 1.10
WIDEST = 1.35
#: A thread waits for a processor now and then on any machine.
MOST_QUEUED_SHARE = 0.05
#: Blocks of the same work agree better than this on a quiet machine (middle half over median).
MOST_SPREAD = 0.10
#: Quartiles of fewer say nothing.
FEWEST_BLOCKS = 4
#: The interval that tells a change of 3 % either way; more pairs than this take too long.
GOOD_WIDTH = 1.06
MOST_BLOCKS = 200
#: Of a smaller speedup two digits behind the point say nothing.
SMALLEST_WITH_TWO_DIGITS = 0.1


def check(
    tables: Tables, *, widest_undecided: float = WIDEST_UNDECIDED, widest: float = WIDEST
) -> Iterator[Finding]:
    """At most one finding: the measurement as a whole."""
    found = _costs.measured(tables)
    low, high = (found["speedup_low"], found["speedup_high"]) if found else (None, None)
    if found is None or not low or not high or found["outcome"] == "not_compiled":
        return
    undecided = low < 1.0 < high
    if high / low <= (widest_undecided if undecided else widest):
        return
    causes = _causes(tables)
    yield Finding(
        code=CODE,
        rule="bm-noise",
        severity="info",
        title=_title(low, high, undecided=undecided),
        explanation=(
            f"{_basis(found)} give a speedup of {_times(found['speedup'])}, and its 95 % interval "
            f"goes from {_times(low)} to {_times(high)}. "
            + ("What makes it so wide: see the evidence." if causes else "Why is not recorded.")
        ),
        cost=Cost(about="no time, but no sure figure either"),
        confidence="measured",
        location=None,
        evidence=(
            Evidence(f"95 % interval of the speedup: {_times(low)} to {_times(high)}", "speedups"),
            *(evidence for evidence, _ in causes),
        ),
        what_to_do=_remedy([remedy for _, remedy in causes], found, high / low),
        snippet=_snippet(found, high / low),
    )


def _title(low: float, high: float, *, undecided: bool) -> str:
    if undecided:
        return f"Too noisy to tell whether compiling helps: {_times(low)} to {_times(high)}"
    return f"The size of the speedup is unsure: {_times(low)} to {_times(high)}"


def _times(speedup: float) -> str:
    return f"{speedup:.2f}×" if speedup >= SMALLEST_WITH_TWO_DIGITS else f"{speedup:.2g}×"


def _basis(found: Row) -> str:
    return f"{found['pairs_used']} pairs of blocks" if found["pairs_used"] else "Two runs"


def _causes(tables: Tables) -> list[tuple[Evidence, str]]:
    """What is known to make blocks differ, with what helps against it."""
    machine = [*_threads(tables), *_queue(tables)]
    # Blocks differ for the machine's sake where that is known, else for the script's.
    return machine or list(_spread(tables))


def _threads(tables: Tables) -> Iterator[tuple[Evidence, str]]:
    run = first(tables, "runs")
    if run is None or run["device_name"] != "cpu" or not run["cpu_count"]:
        return
    if (run["cpu_threads"] or 0) <= run["cpu_count"]:
        return
    yield (
        Evidence(f"{run['cpu_threads']} threads on {run['cpu_count']} processors", "runs"),
        f"Set OMP_NUM_THREADS={run['cpu_count']}: threads take turns on a processor.",
    )


def _queue(tables: Tables) -> Iterator[tuple[Evidence, str]]:
    timed = [
        row
        for row in first_rank(rows(tables, "blocks"))
        if row["pair_index"] is not None and row["queued_ms"] is not None and row["host_ms"]
    ]
    host = sum(row["host_ms"] for row in timed)
    queued = sum(row["queued_ms"] for row in timed)
    if not host or queued <= MOST_QUEUED_SHARE * host:
        return
    yield (
        Evidence(
            f"in {percent(queued / host)} of the timed blocks the step's thread was ready to run "
            "and had no processor",
            "blocks",
        ),
        "Other work runs on these processors: measure on a machine, or processors (taskset), of "
        "its own.",
    )


def _spread(tables: Tables) -> Iterator[tuple[Evidence, str]]:
    pairs = [row for row in first_rank(rows(tables, "block_pairs")) if row["used"]]
    wide = []
    for stance in ("eager", "compiled"):
        times = [row[f"{stance}_ms"] for row in pairs]
        if len(times) < FEWEST_BLOCKS:
            continue
        lower, middle, upper = quantiles(times, n=4)
        if upper - lower > MOST_SPREAD * middle:
            wide.append(f"{stance}: middle half {milliseconds(lower)} to {milliseconds(upper)}")
    if wide:
        yield (
            Evidence(f"a step in different blocks, {'; '.join(wide)}", "block_pairs"),
            "Blocks of the same stance differ: give every step the same work (inputs of one size) "
            "while measuring, and on a GPU lock the clocks (nvidia-smi -lgc).",
        )


def _wanted(found: Row, ratio: float) -> int | None:
    """Pairs after which the interval is narrow enough, None where that is not to be had."""
    pairs = found["pairs_used"] or 0
    wanted = math.ceil(pairs * (math.log(ratio) / math.log(GOOD_WIDTH)) ** 2)
    return wanted if pairs < wanted <= MOST_BLOCKS else None


def _remedy(against: list[str], found: Row, ratio: float) -> str:
    """``against``: what helps against each cause that is known."""
    wanted = _wanted(found, ratio)
    if wanted is not None:
        return " ".join([*against, f"About {wanted} pairs of blocks would tell a change of 3 %."])
    known = against or ["Measure again on a quiet machine, with more steps in a block (--steps)."]
    return " ".join([*known, "More pairs of blocks alone will not do."])


def _snippet(found: Row, ratio: float) -> Snippet | None:
    wanted = _wanted(found, ratio)
    return Snippet("shell", f"traceview diagnose --blocks {wanted} SCRIPT") if wanted else None
