"""
## What it finds
Generated Triton kernels that reduce long rows in fewer programs than half of the multiprocessors.

## Why it costs
A program runs on one multiprocessor; with fewer programs the others have nothing to do. Inductor
splits a long reduction among many programs and adds their results in a second kernel, but decides
it by the sizes of the call that compiled the code. With symbolic sizes later calls run the same
code, however much longer their tensors are. A reduction that is followed by more work on the same
rows, such as a softmax or a norm, is not split at all.

## Evidence
The profile has the kernel's programs and the device's multiprocessors, and, with symbolic sizes,
the size of each launch. The size that the kernel was generated for is in its source
(`size_hints`). The cost is what the kernel takes longer than the eager operators that it replaced;
where it takes no longer, it is at most the part of the device that has nothing to do. Then kernels
below 20 µs are not counted.

## What to do
Where the code was generated for a smaller size, make the first call with one of the usual size, or
compile a variant for it with `dynamic=False`. Where rows are long and few, reduce in two steps:
over parts of each row, then over their results.

## Settings
- `least_share`: part of the compiled step, 0 to 1, that the kernels must lose.
- `least_idle`: the same where they are no slower than eager.

## References
- https://docs.pytorch.org/docs/stable/torch.compiler_dynamic_shapes.html
- https://docs.pytorch.org/docs/stable/torch.compiler_inductor_profiling.html
- torch/_inductor/ir.py, `num_splits`
- torch/_inductor/config.py, `split_reductions`
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.derive.facts.slow_loops import FEW_PROGRAMS
from traceview.rules._gain import at_first
from traceview.rules._slow_loops import kernels, slow
from traceview.rules.kit import (
    MOST_EVIDENCE,
    Finding,
    Snippet,
    Tables,
    from_row,
    milliseconds,
    percent,
    plural,
)

CODE = "TV437"
NEEDS = frozenset({"slow_loops", "step_counts:eager"})
SEVERITIES = ("warning", "info")
EXPLAINS = frozenset({"fusion"})

#: Less of a step is within what a profile is wrong by.
LEAST_SHARE = 0.05
#: What is idle is the most that there is to gain.
LEAST_IDLE = 0.20
#: Sizes are rounded up to a power of two, and up to a few times as much is split the same way.
_LARGER = 4
_WARMED = Snippet("python", "f(*inputs_of_the_usual_size)  # before any smaller ones")
_TWICE = Snippet("python", "x.unflatten(-1, (-1, 4096)).sum(-1).sum(-1)  # x.sum(-1)")


def check(
    tables: Tables, *, least_share: float = LEAST_SHARE, least_idle: float = LEAST_IDLE
) -> Iterator[Finding]:
    """At most one finding: all such kernels together, at the slowest one's line."""
    found = slow(tables, {FEW_PROGRAMS}, least_share)
    found = found or slow(tables, {FEW_PROGRAMS}, least_idle, cost="idle_ms")
    if found is None:
        return
    slowest = found.rows[0]
    where = at_first(*found.places)
    made_for, reduced = slowest["made_for"], slowest["reduced"]
    smaller = made_for is not None and _LARGER * made_for <= reduced
    idle = percent(1 - slowest["programs"] / slowest["multiprocessors"])
    why = (
        f"Its code was generated for {made_for:,} elements at most, the size of the call that "
        f"compiled it, and reduces {reduced:,}: for so few, Inductor does not split a reduction."
        if smaller
        else f"Each result is reduced from {reduced:,} elements, and Inductor did not split this."
    )
    yield Finding(
        code=CODE,
        rule="ind-few-programs",
        severity=found.severity(tables),
        title=(
            f"The generated reduction{where} runs in {plural(slowest['programs'], 'program')} on "
            f"{slowest['multiprocessors']} multiprocessors, {found.loss(tables)}"
        ),
        explanation=(
            f"A step spends {milliseconds(found.ms)} in {kernels(found)}. A program runs on one "
            f"multiprocessor, so {idle} of the device has nothing to do meanwhile. {why}"
        ),
        cost=found.cost,
        confidence="derived",
        location=found.places[0] if found.places else None,
        about=found.about,
        evidence=tuple(
            from_row(
                f"{row['kernel_name']}: {plural(row['programs'], 'program')}, {row['reduced']:,} "
                f"elements for a result, {milliseconds(row['profiled_ms'])} of a profiled step",
                "slow_loops",
                row,
            )
            for row in found.rows[:MOST_EVIDENCE]
        ),
        what_to_do=(
            "Make the first call of the compiled function one of the usual size: later calls run "
            "the code that it compiled. If sizes are few, dynamic=False compiles each on its own."
            if smaller
            else "Reduce in two steps: over parts of each row first, then over their results. Each "
            "part is a program then. For a softmax, subtract a maximum that is found so."
        ),
        snippet=_WARMED if smaller else _TWICE,
        remedy=("dynamic=False",) if smaller else (),
        also_at=tuple(found.places[1:4]),
        weighs=found.weighs(tables),
    )
