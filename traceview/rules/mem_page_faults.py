"""
## What it finds
Compiled steps on a CPU that spend a good part of their time on memory that the process did not have
before: pages that are touched for the first time.

## Why it costs
glibc gives a freed tensor of 32 MiB or more, and free memory at the end of its heap, back to the
system, and requests it again for the next one. The system clears each page at its first touch. That
takes longer than what fused code does with the page, and it limits what compiling can gain.

## Evidence
The process's minor page faults per step in the timed blocks and in the profiled window (the lower
count), and what one costs, measured at the run's end as the first fill of new memory less the
second. Returning memory to the system costs as well and is not in that figure. Where writes to a
part of a tensor (TV430) make most of the new tensors, the finding stands under theirs.

## What to do
Let the allocator keep freed memory: `MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=-1` for glibc, set
before Python starts. The process then keeps the memory of its peak. jemalloc by LD_PRELOAD does the
same with `MALLOC_CONF=dirty_decay_ms:-1,muzzy_decay_ms:-1`. In the script: write into a tensor that
is kept (`out=`, `copy_`).

## Settings
- `least_share`: part of the compiled step, 0 to 1, that page faults must take.
- `least_of_difference`: the same as a part of what compiling changed, or else:
- `most_of_step`: a part of the step that is reported however much compiling changed.

## References
- https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
- https://docs.pytorch.org/docs/stable/torch.compiler_troubleshooting.html
- torch/backends/xeon/run_cpu.py
- https://man7.org/linux/man-pages/man3/mallopt.3.html
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules._starts import of_keys
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Snippet,
    Tables,
    about,
    compile_call,
    first,
    first_rank,
    milliseconds,
    outcome,
    percent,
    rows,
    severity,
    step_ms,
)

CODE = "TV419"
NEEDS = frozenset(
    {"waterfall", "speedups", "step_counts:eager", "step_counts.page_faults", "ceilings"}
)
SEVERITIES = ("warning", "info")
EXPLAINS = frozenset({"page_faults"})
#: Where these make most of the new tensors.
FOLLOWS = frozenset({"ind-partial-write"})

#: It follows from no finding about a function then.
_OF_NO_FUNCTION = frozenset({CODE})
#: A setting of the whole process has to be worth it.
LEAST_SHARE = 0.10
#: Of what compiling changed, or of the compiled step.
LEAST_OF_DIFFERENCE = 0.25
MOST_OF_STEP = 0.50
_SETTINGS = {
    "jemalloc": "MALLOC_CONF=dirty_decay_ms:-1,muzzy_decay_ms:-1",
    "": "MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=-1",
}


def check(
    tables: Tables,
    *,
    least_share: float = LEAST_SHARE,
    least_of_difference: float = LEAST_OF_DIFFERENCE,
    most_of_step: float = MOST_OF_STEP,
) -> Iterator[Finding]:
    """At most one finding, about the compiled step."""
    effect = next(iter(first_rank(rows(tables, "waterfall", effect="page_faults"))), None)
    eager, compiled = step_ms(tables, "eager"), step_ms(tables, "compiled")
    ms = effect and effect["compiled_ms"]
    if effect is None or not ms or not eager or not compiled or ms < least_share * compiled:
        return
    # Where nothing is compiled, memory is not why compiling gains little.
    if outcome(tables) == "not_compiled":
        return
    # Where compiling changed much more, pages decide little, unless they are what is left.
    if ms < min(least_of_difference * abs(compiled - eager), most_of_step * compiled):
        return
    counts = {row["stance"]: row for row in first_rank(rows(tables, "step_counts"))}
    faults = {stance: row["page_faults"] for stance, row in counts.items()}
    (fault,) = first_rank(rows(tables, "ceilings", kind="page_fault"))[:1]
    preloaded = first(tables, "environment", section="env", name="LD_PRELOAD")
    allocator = "jemalloc" if preloaded and "jemalloc" in (preloaded["value"] or "") else ""
    more = ms - (effect["eager_ms"] or 0.0)
    writes = [
        r for r in first_rank(rows(tables, "partial_writes")) if (r["pages_ms"] or 0) > ms / 2
    ]
    yield Finding(
        code=CODE,
        rule="mem-page-faults",
        severity=severity(tables, more) if more > 0 else "info",
        title=(
            f"New memory takes {percent(ms / compiled)} of a compiled step: "
            f"{faults['compiled']:,.0f} pages are touched for the first time"
        ),
        explanation=(
            "The allocator returns freed tensors to the system and requests them again in every "
            f"step. An eager step touches {faults['eager']:,.0f} new pages."
        ),
        cost=Cost(ms, None, "page faults of a compiled step, at the measured cost of one"),
        confidence="derived",
        location=compile_call(first(tables, "regions")),
        about=about(*of_keys(tables, {row["compile_key"] for row in writes})) or _OF_NO_FUNCTION,
        evidence=(
            Evidence(
                f"compiled: {faults['compiled']:,.0f} faults a step in timed blocks, "
                f"{milliseconds(ms)}",
                "step_counts",
            ),
            Evidence(f"one page fault: {fault['value']:.2g} µs, measured", "ceilings"),
        ),
        what_to_do=(
            "Let the allocator keep freed memory; the process then stays as large as at its peak. "
            "Eager steps gain from that as well."
        ),
        snippet=Snippet("shell", f"{_SETTINGS[allocator]} python SCRIPT"),
        remedy=tuple(f"env.{each}" for each in _SETTINGS[allocator].split()),
    )
