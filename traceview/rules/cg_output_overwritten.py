"""
## What it finds
A result of a compiled call that is read after a later call has overwritten it.

## Why it costs
A cudagraph writes its results to the same addresses on every replay. So keeping a result past the
next call ends the script, and only in compiled code: torch raises where the stale tensor is read.

## Evidence
torch's error "accessing tensor output of CUDAGraphs that has been overwritten by a subsequent
run" (or "accessing gradient tensor output …"), with the line that read it and, where torch knows
it, the line that computed it.

## What to do
Copy what you keep past the next call: `.clone()` on the result, outside the compiled function.
`torch.compiler.cudagraph_mark_step_begin()` marks where a step begins; it does not keep the results
of the step before. Accumulated gradients need `.grad` tensors that exist before the first compiled
backward, others `zero_grad(set_to_none=True)` before each one.

## References
- https://docs.pytorch.org/docs/stable/torch.compiler_cudagraph_trees.html
- https://docs.pytorch.org/docs/stable/generated/torch.compiler.cudagraph_mark_step_begin.html
- torch/_inductor/cudagraph_trees.py, `format_dealloc_msg`
- https://github.com/pytorch/pytorch/pull/177192
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules import _failures
from traceview.rules._gain import at_first
from traceview.rules.kit import (
    Cost,
    Finding,
    Snippet,
    Tables,
    first_rank,
    from_row,
    rows,
    short,
    shorten,
    user,
)

CODE = "TV511"
NEEDS = frozenset({"runs"})
SEVERITIES = ("error",)
GPU_ONLY = True

_SAID = "output of CUDAGraphs that has been overwritten"
_RESULTS = (
    "Copy what you keep past the next call, outside the compiled function: .clone() on the result. "
    "torch.compiler.cudagraph_mark_step_begin() does not keep the results of the step before."
)
_GRADIENTS = (
    "Set .grad to None before each backward (zero_grad(set_to_none=True)). To accumulate "
    "gradients, create the .grad tensors before the first compiled backward."
)


def check(tables: Tables) -> Iterator[Finding]:
    """At most one finding: the first such error of the first rank."""
    logged = first_rank(rows(tables, "cudagraph_events", event="overwritten"))[:1]
    runs = first_rank(rows(tables, "runs"))
    ended = [row for row in runs if _SAID in (row["error_message"] or "")][:1]
    if not (logged or ended):
        return
    made = user(logged[0]) if logged else None
    read = _failures.raised_at(ended[0]) if ended else None
    text = ended[0]["error_message"] if ended else logged[0]["reason"]
    of_gradient = "gradient tensor output" in text
    where = at_first(read)
    yield Finding(
        code=CODE,
        rule="cg-output-overwritten",
        severity="error",
        title=(
            f"A {'gradient' if of_gradient else 'result'} of an earlier compiled call is read"
            f"{where} after a later call replaced it"
        ),
        explanation=(
            "A cudagraph writes its results to the same addresses on every replay, so a tensor "
            "that is kept past the next call no longer holds its values, and torch raises."
            + (f" It was computed at {short(made)}." if made else "")
        ),
        cost=Cost(about="the script fails; in eager it does not"),
        confidence="measured",
        location=read or made,
        evidence=(
            *(_failures.error(run, shorten(run["error_message"])) for run in ended),
            *(from_row(shorten(row["reason"]), "cudagraph_events", row) for row in logged),
        ),
        what_to_do=_GRADIENTS if of_gradient else _RESULTS,
        snippet=None if of_gradient else Snippet("python", "y = compiled(x).clone()"),
        also_at=(made,) if read and made and made != read else (),
    )
