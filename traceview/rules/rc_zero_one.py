"""
## What it finds
A size of 1 (or 0) that got a compiled variant of its own: a single request, the one token of a
decoding step, an empty batch.

## Why it costs
One more compile. torch treats sizes of 0 and 1 as constants, since they broadcast: a graph for any
size starts at 2, whatever `dynamic=True` or `mark_dynamic` say. Nothing is wrong, and after the
first such call nothing more is compiled for it.

## Evidence
A recompile whose deciding guard is `2 <= x.size()[0]`, or a size that torch had compiled as a
constant and that was met as 0 or 1.

## What to do
Usually nothing: the variant for 1 is often the faster one. To save its compile, pad to 2, or use
`torch._dynamo.decorators.mark_unbacked`, with which the code may not decide on the size at all.

## References
- https://docs.pytorch.org/docs/main/compile/dynamic_shapes_zero_one_specialization.html
- torch/fx/experimental/symbolic_shapes.py, "0/1 specialization"
- https://github.com/pytorch/pytorch/issues/141225
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules import _recompiles
from traceview.rules.kit import Finding, Tables

CODE = "TV211"
NEEDS = frozenset({"recompile_causes"})
SEVERITIES = ("info",)
IS_CAUSE = False


def check(tables: Tables) -> Iterator[Finding]:
    """One finding a function and tensor."""
    for cause in _recompiles.of_sizes(tables, "zero_one"):
        yield _recompiles.finding(
            tables,
            cause,
            code=CODE,
            rule="rc-zero-one",
            title=f"{cause.subject} is {cause.row['new'] or '0 or 1'}",
            explanation=(
                "torch compiles sizes of 0 and 1 as constants, because they broadcast: a graph for "
                "any size starts at 2. The variant is compiled once and then reused."
            ),
            info=True,
            what_to_do=(
                "Nothing. To save the compile, pad to a size of 2; or mark the size "
                "unbacked before the first call: then one graph serves every size, and code that "
                "decides on the size no longer compiles."
            ),
            paste=cause.marks("decorators.mark_unbacked"),
            remedy=("torch.fx.experimental._config.backed_size_oblivious=True",),
        )
