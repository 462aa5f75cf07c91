"""
## What it finds
An error that ends the script only where it runs compiled, such as a double backward: a gradient of
a gradient that goes through compiled code.

## Why it costs
The script ends there; in eager it goes on. The backward pass of compiled code is compiled as well
and has no derivative of its own.

## Evidence
The exception that ended the script, while the same script went at least as far all in eager without
failing; or torch's own message "torch.compile with aot_autograd does not currently support double
backward". The line is the user's innermost one in the traceback. Where a rule about a kind of error
names the cause (a compile that failed, a custom operator, an overwritten cudagraph's result), this
is its symptom. A graph break that `fullgraph=True` turns into an error has rules of its own.

## What to do
For a double backward, call the original module or function where its gradient is differentiated
again (a gradient penalty, a Hessian), and compile what is differentiated once. For any other error,
find the stage that raises: with `backend="eager"` only Dynamo is left, with `backend="aot_eager"`
Dynamo and AOTAutograd.

## References
- https://docs.pytorch.org/docs/stable/torch.compiler_troubleshooting.html
- torch/_functorch/_aot_autograd/runtime_wrappers.py, `AOTDispatchAutograd`
- https://github.com/pytorch/pytorch/issues/91469
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.derive.processes import lives_in_eager
from traceview.rules import _failures
from traceview.rules.finding import THE_END
from traceview.rules.kit import (
    Evidence,
    Finding,
    Snippet,
    Tables,
    about,
    first_rank,
    rows,
    short,
    shorten,
)

CODE = "TV130"
NEEDS = frozenset({"runs"})
SEVERITIES = ("error",)
FOLLOWS = frozenset(
    {
        *("cap-bad-args", "cap-compile-crash", "cap-customop-no-autograd", "cap-customop-no-fake"),
        *("cap-toolchain-missing", "cg-output-overwritten"),
    }
)

_TWICE = "does not currently support double backward"
_EAGER = """\
score = compiled._orig_mod(x)  # the module as it was, in eager
gradient, = torch.autograd.grad(score.sum(), x, create_graph=True)"""
_STAGE = 'compiled = torch.compile(..., backend="aot_eager")  # then backend="eager"'


def check(tables: Tables) -> Iterator[Finding]:
    """At most one finding, at the line that raises."""
    strict = rows(tables, "break_costs", basis="ended")
    ended = (
        row
        for row in first_rank(rows(tables, "runs", exit_kind="exit"))
        if row["error_type"] not in (None, "SystemExit") and row["exit_code"] != 0
    )
    run = next(ended, None)
    if run is None or strict or tables.once(_failures.own_error):
        return
    message = (run["error_message"] or "").strip().partition("\n")[0]
    twice, lived = _TWICE in message, lives_in_eager(tables, run)
    if not (twice or lived):
        return
    place = _failures.raised_at(run)
    evidence = [_failures.error(run, shorten(message, 300))]
    if lived:
        evidence.append(Evidence("run again all in eager, the script does not fail", "runs"))
    yield Finding(
        code=CODE,
        rule="cap-fails-compiled",
        severity="error",
        title=(
            f"Double backward through compiled code at {short(place)} is not supported"
            if twice
            else f"Only compiled, the script raises {run['error_type']} at {short(place)}"
        ),
        explanation=(
            "A gradient that create_graph=True recorded is differentiated again. The backward pass "
            "of compiled code has no derivative."
            if twice
            else "All in eager, the same script does not fail."
        ),
        cost=THE_END,
        confidence="measured",
        location=place,
        about=about(*rows(tables, "compiles", outcome="failed")),
        evidence=tuple(evidence),
        what_to_do=(
            "Where a gradient is differentiated again, call the original module or function, in "
            "eager. What is differentiated once can stay compiled."
            if twice
            else 'Find the stage that raises: try backend="aot_eager", then "eager". Then keep '
            "the code that it names out of the graph, with @torch.compiler.disable."
        ),
        snippet=Snippet("python", _EAGER if twice else _STAGE),
        remedy=() if twice else ("backend=aot_eager",),
    )
