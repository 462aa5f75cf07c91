"""
## What it finds
A speedup that is too noisy to be sure of: its interval is so wide that the compiled step may be
slower or faster, or that the speedup's size means little.

## Why it costs
It costs no time. It means that a decision should not rest on these figures, and that measuring
again may give others.

## Evidence
The 95 % interval of the speedup over pairs of blocks: it contains 1.0 and its ends differ by more
than 10 %, or they differ by more than 35 %. What makes it wide, as far as it was recorded: more
threads than CPUs, time in which the step's thread was ready to run and had no CPU, blocks of one
stance that differ from each other; and garbage collections, if blocks without their time differ
half as much at most.

## What to do
That depends on the cause: no more threads than CPUs, a machine without other work, inputs of one
size while measuring, no `gc.collect()` in some of the steps, locked clocks on a GPU. More pairs of
blocks (`--blocks`) narrow the interval by the square root of their number.

## Settings
- `widest_undecided`: the interval's upper over its lower end, where it contains 1.0, from which the
  rule reports it.
- `widest`: the same where it does not contain 1.0.

## References
- https://docs.pytorch.org/tutorials/recipes/recipes/benchmark.html
- https://docs.pytorch.org/docs/stable/torch.compiler_profiling_torch_compile.html
- torch/utils/benchmark/utils/common.py
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import quantiles

from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Snippet,
    Tables,
    first,
    first_rank,
    milliseconds,
    percent,
    plural,
    ratio,
    rows,
    speedup,
)

CODE = "TV903"
NEEDS = frozenset({"speedups"})
SEVERITIES = ("info",)

WIDEST_UNDECIDED = 1.10
WIDEST = 1.35
#: A thread waits for a CPU now and then on any machine.
MOST_QUEUED_SHARE = 0.05
#: Blocks of the same work agree better than this on a quiet machine (middle half over median).
MOST_SPREAD = 0.10
#: Collections are why blocks differ if without them they differ by no more than this part of it.
MOST_OF_SPREAD = 0.50
#: Quartiles of fewer blocks mean nothing.
FEWEST_BLOCKS = 4
#: The interval that shows a change of 3 % either way; more pairs than this take too long.
GOOD_WIDTH = 1.06
MOST_BLOCKS = 200


def check(
    tables: Tables, *, widest_undecided: float = WIDEST_UNDECIDED, widest: float = WIDEST
) -> Iterator[Finding]:
    """At most one finding: the measurement as a whole."""
    found = speedup(tables)
    low, high = (found["speedup_low"], found["speedup_high"]) if found else (None, None)
    if found is None or not low or not high or found["outcome"] == "not_compiled":
        return
    undecided = low < 1.0 < high
    if high / low <= (widest_undecided if undecided else widest):
        return
    interval = f"{ratio(low)} to {ratio(high)}"
    pairs = found["pairs_used"] or 0
    basis = f"{pairs} pairs of blocks" if pairs else "Two runs"
    causes = _causes(tables)
    what_to_do = list(dict.fromkeys(remedy for _, remedy in causes))
    wanted = math.ceil(pairs * (math.log(high / low) / math.log(GOOD_WIDTH)) ** 2)
    within_reach = pairs < wanted <= MOST_BLOCKS
    if within_reach:
        what_to_do.append(f"About {wanted} pairs of blocks would show a change of 3 %.")
    else:
        quiet = "Measure again on a quiet machine, with more steps in a block (--steps)."
        what_to_do = [*(what_to_do or [quiet]), "More pairs of blocks alone are not enough."]
    yield Finding(
        code=CODE,
        rule="bm-noise",
        severity="info",
        title=(
            f"Too noisy to be sure whether compiling helps: {interval}"
            if undecided
            else f"Too noisy to be sure of the speedup's size: {interval}"
        ),
        explanation=(
            f"{basis} give a speedup of {ratio(found['speedup'])} with a 95 % interval of "
            f"{interval}. " + ("The evidence shows why." if causes else "Why was not recorded.")
        ),
        cost=Cost(about="no time, but no reliable figure either"),
        confidence="measured",
        location=None,
        evidence=(
            Evidence(f"95 % interval of the speedup: {interval}", "speedups"),
            *(evidence for evidence, _ in causes),
        ),
        what_to_do=" ".join(what_to_do),
        snippet=(
            Snippet("shell", f"traceview diagnose --blocks {wanted} SCRIPT")
            if within_reach
            else None
        ),
    )


def _causes(tables: Tables) -> list[tuple[Evidence, str]]:
    """What makes blocks differ and what to do: the machine where that is known, else the script."""
    found = []
    run = first(tables, "runs")
    cpus = run["cpu_count"] if run and run["device_name"] == "cpu" else None
    if run and cpus and (run["cpu_threads"] or 0) > cpus:
        proof = Evidence(f"{run['cpu_threads']} threads on {cpus} CPUs", "runs")
        found.append((proof, f"Set OMP_NUM_THREADS={cpus}, so that threads do not share a CPU."))
    timed = [
        row
        for row in first_rank(rows(tables, "blocks"))
        if row["pair_index"] is not None and row["queued_ms"] is not None and row["host_ms"]
    ]
    host = sum(row["host_ms"] for row in timed)
    queued = sum(row["queued_ms"] for row in timed)
    if host and queued > MOST_QUEUED_SHARE * host:
        text = "of the timed blocks the step's thread was ready to run and had no CPU"
        remedy = "Other work runs on these CPUs: measure on another machine, or on CPUs of its own"
        proof = Evidence(f"in {percent(queued / host)} {text}", "blocks")
        found.append((proof, f"{remedy} (taskset)."))
    if found:
        return found

    uneven = [
        row
        for row in first_rank(rows(tables, "block_collections"))
        if row["spread_without"] is not None
        and row["blocks"] >= FEWEST_BLOCKS
        and row["spread"] > MOST_SPREAD
        and row["spread_without"] <= MOST_OF_SPREAD * row["spread"]
    ]
    remedy = (
        "Blocks differ because Python's garbage collections lie in some of them: leave "
        "gc.collect() out of the steps, or time more steps in a block (--steps), so that each has "
        "as many."
    )
    for row in uneven:
        text = (
            f"{row['stance']}: garbage collections in {row['with']} of "
            f"{plural(row['blocks'], 'block')}, {milliseconds(row['ms'])} of "
            f"{milliseconds(row['step_ms'])} per step; the middle half of the blocks spans "
            f"{percent(row['spread'])} of their median, and {percent(row['spread_without'])} "
            "without collections"
        )
        found.append((Evidence(text, "block_collections"), remedy))
    if found:
        return found

    all_pairs = first_rank(rows(tables, "block_pairs"))
    pairs = [row for row in all_pairs if row["used"] and row["headline"] is not False]
    wide = []
    for stance in ("eager", "compiled") if len(pairs) >= FEWEST_BLOCKS else ():
        lower, middle, upper = quantiles((row[f"{stance}_ms"] for row in pairs), n=4)
        if upper - lower > MOST_SPREAD * middle:
            wide.append(f"{stance}: middle half {milliseconds(lower)} to {milliseconds(upper)}")
    remedy = (
        "Blocks of the same stance differ: give every step the same work (inputs of one size) "
        "while measuring, and lock the clocks of a GPU (nvidia-smi -lgc)."
    )
    text = f"a step in different blocks, {'; '.join(wide)}"
    return [(Evidence(text, "block_pairs"), remedy)] if wide else []
