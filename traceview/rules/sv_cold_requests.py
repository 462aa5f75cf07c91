"""
## What it finds
Requests of a service that wait for a compile.

## Why it costs
Most requests are quick; the first one of a new shape waits for seconds. Averages hide it, the 99th
percentile does not.

## Evidence
Only callables that are called without an optimizer or a backward, at least 100 times. Requests
after the first one compiled, called from the lines that the profiled steps came from (a warm-up has
lines of its own), while variants that were compiled before came back in between (a sweep over
shapes goes through each of them once). They are more than 1 % of the calls, so that the 99th
percentile of latency is a compile, and it is more than ten times that of the calls that did not
compile.

## What to do
Call the compiled function once for each shape that will come, before the first request does. For
shapes that nobody foresaw, `torch.compiler.set_stance("eager_on_recompile")` after that answers in
eager at once instead of compiling; `"fail_on_recompile"` shows them in a test. A cache that is kept
shortens the warm-up at the next start.

## Settings
- `fewest_requests`: with fewer, any compile is the 99th percentile
- `fewest_compiles`: after the first request, from which on it is no accident
- `spike`: how many times the 99th percentile of other calls that of all calls is

## References
- https://docs.pytorch.org/docs/stable/generated/torch.compiler.set_stance.html
- https://docs.pytorch.org/docs/stable/torch.compiler_dynamic_shapes.html
- torch/compiler/__init__.py, `set_stance`
- https://github.com/karpathy/nanochat/issues/722
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from traceview.rules._families import RECOMPILES
from traceview.rules._requests import Traffic, traffic
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Row,
    Snippet,
    Tables,
    about_region,
    compile_call,
    first,
    milliseconds,
    plural,
    seconds,
)

CODE = "TV620"
NEEDS = frozenset(
    {"calls", "compile_intervals", "compiles", "line_ops", "recompiles", "regions", "runs"}
)

#: What has a function compiled again on the way. Sizes that ``dynamic=False`` keeps apart are no
#: cause: padding to a few sizes is right for a service that calls each of them before it opens.
FOLLOWS = (RECOMPILES - {"rc-dynamic-false"}) | {"rc-limit-hit"}

FEWEST_REQUESTS = 100
#: One may be the last, shorter batch, and two those of two sets.
FEWEST_COMPILES = 3
SPIKE = 10.0


def check(
    tables: Tables,
    *,
    fewest_requests: int = FEWEST_REQUESTS,
    fewest_compiles: int = FEWEST_COMPILES,
    spike: float = SPIKE,
) -> Iterator[Finding]:
    """At most one finding: the traffic as a whole."""
    region = first(tables, "regions", is_anchor=True)
    seen = traffic(tables, region) if region else None
    if region is None or seen is None or seen.requests < fewest_requests:
        return
    p99 = seen.p99_ms
    if len(seen.compiled_ms) < fewest_compiles or p99 is None:
        return
    if p99 >= spike * seen.usual_p99_ms:
        yield _finding(region, seen, p99)


def _finding(region: Row, seen: Traffic, p99: float) -> Finding:
    late = seen.compiled_ms
    return Finding(
        code=CODE,
        rule="sv-cold-requests",
        severity="warning",
        title=(
            f"{plural(len(late), 'request')} of {seen.requests:,} waited for a compile: the 99th "
            f"percentile is {milliseconds(p99)} instead of {milliseconds(seen.usual_p99_ms)}"
        ),
        explanation=(
            "Each was the first of its kind, and nothing had been compiled for it before the "
            "requests came."
        ),
        cost=Cost(seconds=sum(late) / 1e3, about="compiling while a request waited"),
        confidence="measured",
        location=compile_call(region),
        evidence=(
            Evidence(
                f"{plural(len(late), 'call')} compiled after the first one, for "
                f"{seconds(max(late) / 1e3)} at most",
                "compile_intervals",
            ),
            Evidence(
                f"{plural(len(seen.usual_ms), 'call')} without a compile took "
                f"{milliseconds(statistics.median(seen.usual_ms))} (median), "
                f"{milliseconds(seen.usual_p99_ms)} (99th percentile)",
                "calls",
            ),
        ),
        what_to_do=(
            "Before the first request, call it once for each shape that will come. After that, let "
            "shapes that nobody foresaw run in eager instead of compiling."
        ),
        snippet=Snippet(
            "python",
            "for example in one_of_each_shape:\n    compiled(example)\n"
            'torch.compiler.set_stance("eager_on_recompile")',
        ),
        about=about_region(region),
    )
