"""
## What it finds
A line outside of compiled code that makes the host wait for the GPU in every step, for a value:
`loss.item()`, `float(loss)`, `.cpu()`, `print(loss)`, `if loss < best`.

## Why it costs
While the host waits, it launches nothing. When it goes on, the GPU has run dry and idles until the
next launches arrive. Without the wait the host would be ahead, and a step would take the longer of
the host's time and the GPU's, not a part of both.

## Evidence
The profiler window of compiled steps: copies to the host at the user's line, the calls that wait
for them, and the time in which the GPU idles because of these: while the host waits, and while it
fills the GPU again. Where no other line waits, the cost is the host's whole wait, but no more than
the GPU idles for the host's sake. Where the host is the slower of the two anyway, a wait costs next
to nothing, and nothing is said; `ap-launch-bound` is the rule for that.

Left alone are lines where a graph breaks, explicit synchronisation (a benchmark wants it) and lines
where only a library asks for a value. A warning where single values are read and it is 5 % of the
compiled step or more; else information: a tensor that leaves the GPU may be the result.

## What to do
Keep the value on the GPU (`total += loss.detach()`) and read it every 50th step or so; copy it with
`non_blocking=True` into pinned memory and read it a step later. Where many values are read one by
one, read them all at once (`scores.tolist()`).

## Settings
- `least_share`: part of a compiled step, 0 to 1, that a line must cost.

## References
- https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
- https://docs.pytorch.org/docs/stable/notes/cuda.html
- torch/_tensor_str.py
- https://github.com/karpathy/build-nanogpt/pull/6
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from traceview.rules import _costs, _places
from traceview.rules._evidence import milliseconds, percent
from traceview.rules._rows import Row, first, first_rank, frame, rows
from traceview.rules.finding import Cost, Evidence, Finding, Location
from traceview.tables import Tables

CODE = "TV503"
NEEDS = frozenset({"account_details", "accounting", "graph_breaks", "host_reads", "step_counts"})
GPU_ONLY = True

LEAST_SHARE = 0.01
#: Reads in fewer steps than these are what the rule asks for.
LEAST_READS = 0.5
#: So many values of a step are better read at once.
SEVERAL = 2
_SYNC = "idle_sync"
#: Idle time that a host which is further ahead does not shorten.
_DEVICES_OWN = ("idle_device", "idle_inside_graph", "idle_unlinked", "idle_communication")


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """One finding a line, dearest first."""
    step = _costs.step_ms(tables, "compiled")
    if not step:
        return
    broken = {(row["user_file"], row["user_line"]) for row in rows(tables, "graph_breaks")}
    lines = []
    for row in first_rank(rows(tables, "host_reads", stance="compiled")):
        each_step = row["scalars"] + row["tensors"] >= LEAST_READS
        if each_step and row["asks"] and (row["file"], row["line"]) not in broken:
            lines.append((_cost_ms(tables, row), row))
    for ms, row in sorted(lines, key=lambda line: -line[0]):
        if ms >= least_share * step:
            yield _finding(row, ms, step)


def _cost_ms(tables: Tables, row: Row) -> float:
    """ms of a step that end with the line's wait; at least so many where other lines wait, too."""
    details = frame(tables, "account_details", stance="compiled", category=_SYNC)
    lowest = pl.lit(details["rank"].min(), dtype=pl.Int32)
    here = details.filter(
        pl.col("rank").eq_missing(lowest),
        pl.col("file") == row["file"], pl.col("line") == row["line"],
    )  # fmt: skip
    waited, profiled = row["waited_ms"] or 0.0, float(here["profiled_ms"].sum())
    # Nobody saves more than the wait: what lies around it is the way of launches to the GPU.
    idle = float(here["ms"].sum()) * min(1.0, waited / profiled if profiled else 1.0)
    counts = first(tables, "step_counts", stance="compiled")
    alone = counts is not None and (counts["syncs"] or 0) <= row["scalars"] + row["tensors"]
    return max(idle, min(waited, _idle_for_host(tables))) if alone else idle


def _idle_for_host(tables: Tables) -> float:
    accounts = first_rank(rows(tables, "accounting", stance="compiled", kind="idle"))
    idle = (row["ms"] or 0.0 for row in accounts if row["category"] not in _DEVICES_OWN)
    return sum(idle, 0.0)


def _finding(row: Row, ms: float, step: float) -> Finding:
    place = Location(row["file"], row["line"])
    single = row["scalars"] > 0
    count = row["scalars"] + row["tensors"]
    return Finding(
        code=CODE,
        rule="ap-host-sync",
        severity="warning" if single and ms >= _costs.DEAR_SHARE * step else "info",
        title=f"{_places.short(place)} waits for the GPU: up to {percent(ms / step)} of a step",
        explanation=(
            "The line needs a value from the GPU, so the host waits until all that was launched is "
            "done, and the GPU then waits for the next launches."
        ),
        cost=Cost(ms, None, "time of a compiled step that a host which does not wait here saves"),
        confidence="derived",
        location=place,
        evidence=(
            Evidence(
                f"{row['asks']} at the line, {count:.3g} copies to the host a step: the host waits "
                f"{milliseconds(row['waited_ms'])} for them, as profiled",
                "host_reads",
            ),
            Evidence(
                f"the GPU idles {milliseconds(ms)} of {milliseconds(step)} because of that",
                "accounting",
            ),
        ),
        what_to_do=_remedy(row["scalars"]),
    )


def _remedy(scalars: float) -> str:
    if scalars >= SEVERAL:
        return (
            "Read all values with one copy, scores.tolist() in place of score.item() for each; "
            "better every 50th step or so, if no step needs them at once."
        )
    return (
        "If the step itself does not need the value: leave it on the GPU (total += loss.detach()) "
        "and read it every 50th step or so, or copy it into pinned memory (non_blocking=True) and "
        "read it one step later."
    )
