"""
## What it finds
Compiled steps in which the GPU mostly waits for the host to launch its next kernel.

## Why it costs
Kernels of a few microseconds finish before the host has launched the next one. Fusing made fewer
of them; what is left is bound by the CPU, and a faster GPU would change nothing.

## Evidence
In the profiler window of the compiled stance the device is busy for less than 60 % of a step, and
at least half of its idle time lies between launches rather than at synchronisations or outside of
the compiled calls. Profiling itself slows the host, so the share is compared with the timed step
too.

## What to do
`mode="reduce-overhead"` records the launches into a cudagraph and replays it with one call: it
wants fixed shapes and no writes into inputs. Or give each launch more work: a larger batch.

## References
- https://docs.pytorch.org/docs/stable/torch.compiler_profiling_torch_compile.html
- https://docs.pytorch.org/docs/stable/torch.compiler_inductor_profiling.html
- https://docs.pytorch.org/docs/stable/torch.compiler_cudagraph_trees.html
- torch/_inductor/cudagraph_trees.py
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules import _costs, _places
from traceview.rules._evidence import milliseconds, percent
from traceview.rules._rows import Row, first, first_rank, rows
from traceview.rules.finding import Cost, Evidence, Finding, Snippet
from traceview.tables import Tables

CODE = "TV502"
NEEDS = frozenset({"step_counts", "accounting"})

#: torch's own profiling guide takes less than this for a sign of launch overhead.
MOST_BUSY_SHARE = 0.60
#: The larger part of the idle time must be the launches' fault.
FEWEST_LAUNCH_SHARE = 0.50


def check(tables: Tables) -> Iterator[Finding]:
    """At most one finding: the compiled step as a whole."""
    counts = first(tables, "step_counts", stance="compiled")
    if not (counts and counts["device_busy_ms"] and counts["step_ms"]):
        return
    step = min(filter(None, (counts["step_ms"], _costs.step_ms(tables, "compiled"))))
    idle, launch = _idle(tables)
    busy = counts["device_busy_ms"] / step
    if busy >= MOST_BUSY_SHARE or not idle or launch < FEWEST_LAUNCH_SHARE * idle:
        return
    region = first(tables, "regions")
    yield Finding(
        code=CODE,
        rule="ap-launch-bound",
        severity="warning",
        title=f"The GPU works {percent(busy)} of a compiled step and waits for launches otherwise",
        explanation=(
            f"{counts['kernels']:.0f} kernels of {_each(counts)} on average need "
            f"{milliseconds(counts['device_busy_ms'])} of a step of {milliseconds(step)}; the host "
            "cannot launch them any faster."
        ),
        cost=Cost(step * (1 - busy), None, "device idle time of a compiled step"),
        confidence="measured",
        location=_places.compile_call(region) if region else None,
        evidence=(
            Evidence(
                f"{counts['launches'] or 0:.0f} launches and {counts['graph_launches'] or 0:.0f} "
                "cudagraph launches per step",
                "step_counts",
            ),
            Evidence(f"{percent(launch / idle)} of the idle time is launch-bound", "accounting"),
        ),
        what_to_do=(
            "Record the launches as a cudagraph (fixed shapes, no writes into inputs), or give "
            "each "
            "launch more work with a larger batch."
        ),
        snippet=_snippet(region),
    )


def _idle(tables: Tables) -> tuple[float, float]:
    """(idle, launch-bound idle) of a compiled step, ms."""
    idle = [
        row
        for row in first_rank(rows(tables, "accounting", stance="compiled"))
        if row["kind"] == "idle"
    ]
    launch = [row for row in idle if "launch" in row["category"]]
    return sum(row["ms"] or 0 for row in idle), sum(row["ms"] or 0 for row in launch)


def _each(counts: Row) -> str:
    return milliseconds(counts["device_busy_ms"] / max(1.0, counts["kernels"] or 1.0))


def _snippet(region: Row | None) -> Snippet | None:
    if region is None or region["mode"] is not None or region["options"] is not None:
        return None
    return Snippet("python", 'torch.compile(..., mode="reduce-overhead")')
