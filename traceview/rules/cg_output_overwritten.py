"""
## What it finds
A result of a compiled call that is read after a later call has overwritten it.

## Why it costs
A cudagraph writes its results to the same addresses on every replay. Keeping one over the next
call therefore ends the script, and only in compiled code: torch raises where the stale tensor is
read.

## Evidence
torch's error "accessing tensor output of CUDAGraphs that has been overwritten by a subsequent
run" (or "accessing gradient tensor output …"), with the line that read it and, where torch knows
it, the line that computed it.

## What to do
Copy what outlives a call: `.clone()` on the result, outside the compiled function.
`torch.compiler.cudagraph_mark_step_begin()` says where a step begins; it does not keep the results
of the step before. Gradients that are accumulated need `.grad` tensors that exist before the first
compiled backward, others `zero_grad(set_to_none=True)` before each one.

## References
- https://docs.pytorch.org/docs/stable/torch.compiler_cudagraph_trees.html
- https://docs.pytorch.org/docs/stable/generated/torch.compiler.cudagraph_mark_step_begin.html
- torch/_inductor/cudagraph_trees.py, `format_dealloc_msg`
- https://github.com/pytorch/pytorch/pull/177192
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules import _places
from traceview.rules._evidence import from_row
from traceview.rules._rows import Row, first_rank, rows
from traceview.rules.finding import Cost, Evidence, Finding, Location, Snippet
from traceview.tables import Tables
from traceview.words.text import shorten

CODE = "TV511"
NEEDS = frozenset({"runs"})
GPU_ONLY = True

_SAID = "output of CUDAGraphs that has been overwritten"
_OF_GRADIENT = "gradient tensor output"


def check(tables: Tables) -> Iterator[Finding]:
    """At most one finding: the first such error of the first rank."""
    logged = first_rank(rows(tables, "cudagraph_events", event="overwritten"))
    ended = [
        row for row in first_rank(rows(tables, "runs")) if _SAID in (row["error_message"] or "")
    ]
    if logged or ended:
        yield _finding(logged, ended)


def _finding(logged: list[Row], ended: list[Row]) -> Finding:
    read = _read_at(ended[0]) if ended else None
    made = next(filter(None, map(_places.user, logged)), None)
    text = ended[0]["error_message"] if ended else logged[0]["reason"]
    of_gradient = _OF_GRADIENT in text
    what = "gradient" if of_gradient else "result"
    where = f" at {_places.short(read)}" if read else ""
    return Finding(
        code=CODE,
        rule="cg-output-overwritten",
        severity="error",
        title=f"A {what} of an earlier compiled call is read{where} after a later call replaced it",
        explanation=(
            "A cudagraph writes its results to the same addresses on every replay, so a tensor "
            "that is kept over the next call no longer holds its values, and torch raises."
            + (f" It was computed at {_places.short(made)}." if made else "")
        ),
        cost=Cost(about="the script fails; in eager it does not"),
        confidence="measured",
        location=read or made,
        evidence=tuple(_proof(logged, ended)),
        what_to_do=_GRADIENTS if of_gradient else _RESULTS,
        snippet=None if of_gradient else Snippet("python", "y = compiled(x).clone()"),
        also_at=(made,) if read and made and made != read else (),
    )


_RESULTS = (
    "Copy what outlives the call, outside the compiled function: .clone() on the result. "
    "torch.compiler.cudagraph_mark_step_begin() does not keep the results of the step before."
)
_GRADIENTS = (
    "Set .grad to None before each backward (zero_grad(set_to_none=True)). To accumulate "
    "gradients, make the .grad tensors before the first compiled backward."
)


def _read_at(run: Row) -> Location | None:
    """The line of the user's that raised."""
    if run["error_file"] is None or run["error_line"] is None:
        return None
    return Location(run["error_file"], run["error_line"], run["error_function"])


def _proof(logged: list[Row], ended: list[Row]) -> Iterator[Evidence]:
    if ended:
        yield Evidence(f"{ended[0]['error_type']}: {shorten(ended[0]['error_message'])}", "runs")
    for row in logged[:1]:
        yield from_row(shorten(row["reason"]), "cudagraph_events", row)
