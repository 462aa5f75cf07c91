"""
## What it finds
Requests to a service that wait for a compile.

## Why it costs
Most requests are fast; the first one with a new shape waits for seconds. Averages hide that, the
99th percentile does not.

## Evidence
Only callables that are called without an optimizer or a backward, at least 100 times. Requests
after the first one compiled, called from the lines that the profiled steps came from (a warm-up has
lines of its own), while variants that were compiled before came back in between (a sweep over
shapes goes through each of them once). They are more than 1 % of the calls, so that the 99th
percentile of latency is a compile, and it is more than ten times that of the calls that did not
compile.

## What to do
Call the compiled function once for each expected shape before the first request. For unexpected
shapes, `torch.compiler.set_stance("eager_on_recompile")` after that runs them in eager at once
instead of compiling; `"fail_on_recompile"` shows them in a test. A kept cache shortens the warm-up
at the next start.

## Settings
- `fewest_requests`: with fewer requests nothing is reported: any compile is their 99th percentile
- `fewest_compiles`: fewer compiles after the first request are not reported
- `spike`: least ratio of the 99th percentile to that of calls without a compile

## References
- https://docs.pytorch.org/docs/stable/generated/torch.compiler.set_stance.html
- https://docs.pytorch.org/docs/stable/torch.compiler_dynamic_shapes.html
- torch/compiler/__init__.py, `set_stance`
- https://github.com/karpathy/nanochat/issues/722
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator

from traceview.derive.facts.places import stack
from traceview.rules import _starts
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Snippet,
    Tables,
    about_region,
    compile_call,
    first,
    first_rank,
    milliseconds,
    plural,
    rows,
    seconds,
)

CODE = "TV620"
NEEDS = frozenset(
    {"calls", "compile_intervals", "compiles", "line_ops", "recompiles", "regions", "runs"}
)
SEVERITIES = ("warning",)

#: What has a function compiled again on the way. Sizes that ``dynamic=False`` keeps apart are no
#: cause: padding to a few sizes is right for a service that calls each of them before it opens.
FOLLOWS = frozenset({"rc-*", "rc-limit-hit"})

FEWEST_REQUESTS = 100
#: One may be the last, shorter batch, and two those of two sets.
FEWEST_COMPILES = 3
SPIKE = 10.0

_TAIL = 0.01
#: Clocks of the log and of the collector are the same; what they note is not the same moment.
_APART_US = 20_000.0


def check(
    tables: Tables,
    *,
    fewest_requests: int = FEWEST_REQUESTS,
    fewest_compiles: int = FEWEST_COMPILES,
    spike: float = SPIKE,
) -> Iterator[Finding]:
    """At most one finding: the traffic as a whole."""
    region, run = first(tables, "regions", is_anchor=True), first(tables, "runs")
    if region is None or run is None or run["step_kind"] != "call" or not run["steps_seen"]:
        return
    if rows(tables, "compiles", is_forward=False):
        return
    requests = run["steps_seen"] - _starts.eager_steps(tables)
    calls = rows(tables, "calls", stance="compiled", region_id=region["region_id"], outermost=True)
    usual = sorted(
        row["host_ms"]
        for row in first_rank(calls)
        if row["compiles_inside"] == 0 and row["host_ms"] is not None
    )
    if requests < fewest_requests or not usual:
        return
    # The 99th percentile, where it is a compile, against that of the calls that need not compile:
    # sizes of requests may differ much.
    late, above = _late_ms(tables), int(_TAIL * requests)
    usual_p99 = usual[math.ceil((1 - _TAIL) * len(usual)) - 1]
    if len(late) < max(fewest_compiles, above + 1) or late[above] < spike * usual_p99:
        return
    compiled = f"{plural(len(late), 'call')} compiled after the first one"
    typical = f"{milliseconds(statistics.median(usual))} (median)"
    yield Finding(
        code=CODE,
        rule="sv-cold-requests",
        severity="warning",
        title=(
            f"{len(late):,} of {requests:,} requests waited for a compile: 99th percentile "
            f"{milliseconds(late[above])} instead of {milliseconds(usual_p99)}"
        ),
        explanation=(
            "Each was the first with its shapes, and nothing had been compiled for them before "
            "the first request."
        ),
        cost=Cost(seconds=sum(late) / 1e3, about="compiling while a request waited"),
        confidence="measured",
        location=compile_call(region),
        evidence=(
            Evidence(f"{compiled}, for {seconds(late[0] / 1e3)} at most", "compile_intervals"),
            Evidence(
                f"{plural(len(usual), 'call')} without a compile took {typical}, "
                f"{milliseconds(usual_p99)} (99th percentile)",
                "calls",
            ),
        ),
        what_to_do=(
            "Before the first request, call it once for each expected shape. After that, let "
            "other shapes run in eager instead of compiling."
        ),
        snippet=Snippet(
            "python",
            "for example in one_of_each_shape:\n    compiled(example)\n"
            'torch.compiler.set_stance("eager_on_recompile")',
        ),
        about=about_region(region),
    )


def _late_ms(tables: Tables) -> list[float]:
    """Milliseconds of compiling in each request that compiled after the first, longest first.

    Only compiles that were met on the profiled steps' own way to the call: a warm-up has lines of
    its own. Empty for a sweep: no older variant was called before a new one came.
    """
    lines = {row["name"] for row in first_rank(rows(tables, "line_ops", kind="line"))}
    own = {line.rpartition(":")[0] for line in lines} | set(tables["sources"]["file"])
    compiles = first_rank(rows(tables, "compiles", is_forward=True))
    compiles.sort(key=lambda row: row["started_us"] or 0.0)
    # torch puts the variant that was called last in front: a guard that failed first says which.
    newest = {row["compile_key"]: row for row in rows(tables, "recompiles", order=0)}
    spans = [
        (row["started_us"] - _APART_US, row["started_us"] + 1e3 * row["duration_ms"], row)
        for row in first_rank(rows(tables, "compile_intervals"))
        if row["started_us"] is not None and row["duration_ms"] is not None
    ]
    spent: dict[int, float] = {}
    came_back = False
    for row in compiles[1:]:
        way = {f"{at.file}:{at.line}" for at in stack(row)[:-1] if at.file in own}
        if not way or not way <= lines:
            continue
        failed, number = newest.get(row["compile_key"]), row["frame_compile_id"]
        if failed and failed["failed_compile_id"] and number is not None:
            before = f"{row['frame_id']}/{number - 1}"
            came_back |= failed["failed_compile_id"].partition("_")[0] != before
        at_us = row["started_us"]
        inside = (span for start, end, span in spans if at_us is not None and start <= at_us < end)
        span = next(inside, None)
        if span is not None and span["step"] is not None:
            spent[span["step"]] = spent.get(span["step"], 0.0) + span["duration_ms"]
    return sorted(spent.values(), reverse=True) if came_back else []
