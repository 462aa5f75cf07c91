"""
## What it finds
Random numbers (dropout, `rand`, `randn`) in a generated C++ kernel. Either it is slower than the
eager operators that it replaced, or the numbers take much of the compiled step.

## Why it costs
Generated kernels for a CPU draw random numbers from Philox, one element at a time; a normal number
takes 30 ns. ATen fills a tensor with vector code.

## Evidence
Calls of `normalized_rand_cpu`, `randn_cpu` or `randint64_cpu` in the kernel's source. The loss is
what the kernel takes longer than the eager operators of the same group, which is measured, and no
more than these calls are of the kernel's instructions: 150 for a normal number, 80 for another. The
cost is that part of the kernel less what the eager operators take for as many numbers, as the rest
stays fused. Information where compiling helped as a whole.

## What to do
Let the generated code call ATen's generators: `torch._inductor.config.fallback_random = True`,
before the first compiled call. The numbers are then those of eager mode for the same seed. Or draw
noise once for many steps, outside of compiled code.

## Settings
- `least_share`: part of the compiled step, 0 to 1, that these kernels must lose to eager.
- `least_drawn`: part of the step that the numbers must take where nothing is lost.

## References
- https://docs.pytorch.org/docs/stable/generated/torch.compile.html
- torch/_inductor/config.py, `fallback_random`
- torch/_inductor/fx_passes/replace_random.py
- https://github.com/pytorch/pytorch/pull/97002
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules._gain import at_first
from traceview.rules._slow_loops import kernels, slow
from traceview.rules.kit import (
    Finding,
    Snippet,
    Tables,
    milliseconds,
    percent,
    step_ms,
)
from traceview.torchtext import cpp_loops

CODE = "TV407"
NEEDS = frozenset({"slow_loops", "step_counts:eager"})
SEVERITIES = ("warning", "info")
EXPLAINS = frozenset({"fusion"})

#: Less of a step is not worth a setting, and within what a profile is wrong by.
LEAST_SHARE = 0.05
#: Their part of a kernel is estimated.
LEAST_DRAWN = 0.20


def check(
    tables: Tables, *, least_share: float = LEAST_SHARE, least_drawn: float = LEAST_DRAWN
) -> Iterator[Finding]:
    """At most one finding: all random numbers together, at the slowest kernel's line."""
    found = slow(tables, {cpp_loops.RANDOM}, least_share)
    drawn = slow(tables, {cpp_loops.RANDOM}, least_drawn, cost="drawn_ms")
    found = found or drawn
    if found is None:
        return
    where = at_first(*found.places)
    step, ms = step_ms(tables, "compiled") or 1.0, milliseconds(found.lost_ms)
    loss = f"{ms} that eager would not take" if found.potential else f"{ms} slower than eager"
    yield Finding(
        code=CODE,
        rule="ind-random-numbers",
        severity=found.severity(tables),
        title=(
            f"Random numbers{where} are drawn one element at a time, {loss} "
            f"({percent(found.lost_ms / step)} of the step)"
        ),
        explanation=(
            f"A step spends {milliseconds(found.ms)} in {kernels(found)} with random numbers. "
            "Generated code for a CPU calls its generator for each element; ATen fills a tensor "
            "with vector code."
        ),
        cost=drawn.cost if drawn and drawn.lost_ms > found.lost_ms else found.cost,
        confidence="derived",
        location=found.places[0] if found.places else None,
        about=found.about,
        evidence=found.evidence("one at a time"),
        what_to_do=(
            "Let compiled code call ATen's generators: set fallback_random before the first "
            "compiled call. Its random numbers are then those of eager mode for the same seed."
        ),
        snippet=Snippet("python", "torch._inductor.config.fallback_random = True"),
        remedy=("torch._inductor.config.fallback_random=True",),
        also_at=tuple(found.places[1:4]),
        weighs=found.weighs(tables),
    )
