"""
## What it finds
Compiled calls so short that entering them takes longer than fusion saves.

## Why it costs
Each call of a compiled callable looks up its guards, runs a wrapper and converts arguments: some
ten microseconds on the host, whatever the work. A call of a few microseconds gets slower.

## Evidence
Guard look-up, pre-graph bytecode and runtime wrappers, as profiled, are more than 30 % of the
compiled step as timed, and compiled steps are more than 10 % slower than eager ones. A small call
that got faster is not named.

## What to do
Compile a larger piece: the function that holds the loop, not its body. Or leave this one in
eager. With fixed shapes on a GPU, `mode="reduce-overhead"` takes the launches away as well.

## Settings
- `fewest_overhead_share`: part of the compiled step that entering must take.
- `fewest_ratio`: compiled over eager time of a step that it must reach.

## References
- https://docs.pytorch.org/docs/stable/torch.compiler_profiling_torch_compile.html
- torch/_dynamo/eval_frame.py
- https://github.com/ScalingIntelligence/KernelBench/issues/68
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules import _costs, _places
from traceview.rules._evidence import milliseconds, percent
from traceview.rules._families import GRAPH_BREAKS
from traceview.rules._rows import first, first_rank, rows
from traceview.rules.finding import Cost, Evidence, Finding
from traceview.tables import Tables

CODE = "TV501"
NEEDS = frozenset({"step_counts", "speedups"})
#: Each break adds an entry, each variant of a function one more set of guards to try.
FOLLOWS = GRAPH_BREAKS | {"gb-fragmented", "rc-limit-hit", "gd-guard-overhead"}

#: Below this share the slowdown has another main cause.
FEWEST_OVERHEAD_SHARE = 0.30
#: Compiled over eager time of a step from which compiling hurts beyond doubt.
FEWEST_RATIO = 1.1


def check(
    tables: Tables,
    *,
    fewest_overhead_share: float = FEWEST_OVERHEAD_SHARE,
    fewest_ratio: float = FEWEST_RATIO,
) -> Iterator[Finding]:
    """At most one finding: at the region that is called most."""
    counts = first(tables, "step_counts", stance="compiled")
    ratio = _costs.ratio(tables)
    eager, compiled = (_costs.step_ms(tables, stance) for stance in ("eager", "compiled"))
    if not (counts and counts["call_overhead_ms"] and ratio):
        return
    if not (eager and compiled) or ratio <= fewest_ratio:
        return
    # The profiler stretches a step of microseconds many times over: the timed step is the measure.
    share = min(1.0, counts["call_overhead_ms"] / compiled)
    if share <= fewest_overhead_share:
        return
    yield _finding(tables, share, min(counts["call_overhead_ms"], compiled), eager, compiled)


def _finding(
    tables: Tables, share: float, overhead: float, eager: float, compiled: float
) -> Finding:
    regions = first_rank(rows(tables, "regions"))
    region = max(regions, key=lambda row: row["calls"] or 0, default=None)
    name = region["name"] if region else "the compiled callable"
    return Finding(
        code=CODE,
        rule="ap-call-overhead",
        severity="warning",
        title=(
            f"Entering {name} takes {percent(share)} of a compiled step: the call is too small to "
            "gain"
        ),
        explanation=(
            f"A step takes {milliseconds(eager)} in eager and {milliseconds(compiled)} compiled. "
            "Guards, wrapper and argument handling cost about the same for every call, however "
            "little it does."
        ),
        cost=Cost(compiled - eager, None, "compiled step less eager step, timed blocks"),
        confidence="measured",
        location=_places.compile_call(region) if region else None,
        about=_places.about_calls(tables, region),
        evidence=(
            Evidence(
                f"look-up and wrappers {milliseconds(overhead)} as profiled, of a timed step of "
                f"{milliseconds(compiled)}",
                "step_counts",
            ),
            Evidence(f"compiled / eager = {compiled / eager:.2f}", "speedups"),
        ),
        what_to_do=(
            "Compile the function that holds the loop around this call, so that one entry covers "
            "many of them, or leave this one in eager."
        ),
    )
