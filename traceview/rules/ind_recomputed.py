"""
## What it finds
A generated C++ kernel that computes a function such as pow, sin or erf several times for the same
value (for each shift of `torch.roll`, for each row of a broadcast), and is slower than the eager
operators that it replaced.

## Why it costs
Inductor writes what computes a value into every loop that uses it, to save the memory traffic of a
tensor in between. A value that is broadcast is then computed again for every row, and one that two
loops use is computed in both. An addition costs nothing there; a function costs more than the
traffic. On a CPU Inductor keeps results of exp, log, tanh and sigmoid that are used again, and of
long expressions, but no others.

## Evidence
The kernel's source: evaluations of the function in its loops, and how many different values there
are among them, from what the loads' indices name. The cost is what the kernel takes longer than the
eager operators of the same group, which is measured, and no more than the eager operator takes for
as many values. Information where compiling helped as a whole.

## What to do
`realize_opcount_threshold` 0 in the options of `torch.compile` makes Inductor store every result
that is used again. Other fusions may get lost with it, so compare. If the value is the same in
every step, compute it once outside of compiled code.

## Settings
- `least_share`: part of the compiled step, 0 to 1, that these kernels must lose.

## References
- https://docs.pytorch.org/docs/stable/generated/torch.compile.html
- torch/_inductor/config.py, `realize_opcount_threshold`
- torch/_inductor/ir.py, `should_realize_on_reuse`
- https://github.com/pytorch/pytorch/issues/93552
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.derive.facts.slow_loops import RECOMPUTED
from traceview.rules._slow_loops import kernels, slow
from traceview.rules.kit import (
    Finding,
    Snippet,
    Tables,
    milliseconds,
    percent,
    short,
    step_ms,
)

CODE = "TV415"
NEEDS = frozenset({"slow_loops", "step_counts:eager"})
SEVERITIES = ("warning", "info")
EXPLAINS = frozenset({"fusion"})

#: Less of a step is not worth an option, and within what a profile is wrong by.
LEAST_SHARE = 0.05


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """At most one finding: all such kernels together, at the slowest one's line."""
    found = slow(tables, {RECOMPUTED}, least_share)
    if found is None:
        return
    where = f" at {short(found.places[0])}" if found.places else ""
    step = step_ms(tables, "compiled") or 1.0
    names, slowest = found.functions, found.rows[0]
    verb = "is computed" if names == slowest["functions"][0] else "are computed"
    yield Finding(
        code=CODE,
        rule="ind-recomputed",
        severity=found.severity(tables),
        title=(
            f"{names}{where} {verb} {slowest['evaluations'] / slowest['distinct']:,.3g} times for "
            f"each value, {milliseconds(found.slower_ms)} slower than "
            f"eager ({percent(found.slower_ms / step)} of the step)"
        ),
        explanation=(
            f"A step spends {milliseconds(found.ms)} in {kernels(found)}. Inductor puts the "
            "computation into each loop that uses its result, and each row of a broadcast, "
            "instead of storing it once."
        ),
        cost=found.cost,
        confidence="derived",
        location=found.places[0] if found.places else None,
        about=found.about,
        evidence=found.evidence("for {distinct:,} different values"),
        what_to_do=(
            "Make Inductor store results that are used again, and compare. If the value is the "
            "same in every step, compute it once outside of compiled code."
        ),
        snippet=Snippet("python", 'torch.compile(…, options={"realize_opcount_threshold": 0})'),
        remedy=("torch._inductor.config.realize_opcount_threshold=0",),
        also_at=tuple(found.places[1:4]),
    )
