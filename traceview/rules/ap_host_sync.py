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
for them, and a replay: the window is played again as it was without the profiler, then once more
without the line's reads. The difference is the cost: a host that is not held comes to all that
follows earlier, up to where the GPU is the slower of the two. Where the host is the slower one
anyway, a wait costs next to nothing, and nothing is said.

A line that reads several values in each step finds the GPU without work each time, and is played
without all that it does outside of compiled graphs: all of that goes where the values are read more
rarely. Neighbouring lines that read equally many are one place.

Left alone are lines where a graph breaks, explicit synchronisation (a benchmark wants it) and lines
where only a library asks for a value. A warning where single values are read and it is 5 % of the
compiled step or more; else information: a tensor that leaves the GPU may be the result.

## What to do
Keep the value on the GPU (`total += loss.detach()`) and read it every 50th step or so; copy it with
`non_blocking=True` into pinned memory and read it a step later. Where many values are read one by
one, read them all at once (`torch.stack(values).tolist()`).

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

from traceview.derive.time.read_replays import SEVERAL
from traceview.rules import _costs, _places, _reads
from traceview.rules._reads import Place
from traceview.rules._rows import Row
from traceview.rules.finding import Cost, Evidence, Finding, Location
from traceview.tables import Tables
from traceview.words.numbers import milliseconds, percent

CODE = "TV503"
NEEDS = frozenset({"graph_breaks", "host_reads", "read_replays", "step_counts"})
GPU_ONLY = True

LEAST_SHARE = 0.01


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """One finding a place, dearest first."""
    step = _costs.step_ms(tables, "compiled")
    if not step:
        return
    for place in tables.once(_reads.places):
        if place.cost_ms >= least_share * step:
            yield _finding(place, step)


def _finding(place: Place, step: float) -> Finding:
    first, *others = (Location(row["file"], row["line"]) for row in place.lines)
    scalars = sum(row["scalars"] for row in place.lines)
    count = scalars + sum(row["tensors"] for row in place.lines)
    waited = sum(row["waited_ms"] or 0.0 for row in place.lines)
    ms = place.cost_ms
    return Finding(
        code=CODE,
        rule="ap-host-sync",
        severity="warning" if scalars and ms >= _costs.DEAR_SHARE * step else "info",
        title=f"{_named(place.lines)} for the GPU: up to {percent(ms / step)} of a step",
        explanation=(
            "A value is needed from the GPU, so the host waits until all that was launched is "
            "done, and the GPU then waits for the next launches."
        ),
        cost=Cost(ms, None, "time of a compiled step that a host which does not wait here saves"),
        confidence="derived",
        location=first,
        also_at=tuple(others),
        evidence=(
            Evidence(
                f"{place.lines[0]['asks']} there, {count:.3g} copies to the host a step: the host "
                f"waits {milliseconds(waited)} for them, as profiled",
                "host_reads",
            ),
            Evidence(
                f"played again without them, a step of {milliseconds(step)} takes "
                f"{milliseconds(place.without_ms)}",
                "read_replays",
            ),
        ),
        what_to_do=_remedy(scalars),
    )


def _named(lines: list[Row]) -> str:
    """``train.py:50 waits``, ``train.py:50 to 52 wait``."""
    named = _places.short(Location(lines[0]["file"], lines[0]["line"]))
    return f"{named} to {lines[-1]['line']} wait" if lines[1:] else f"{named} waits"


def _remedy(scalars: float) -> str:
    if scalars >= SEVERAL:
        return (
            "Gather the values on the GPU and read them with one copy, torch.stack(them).tolist() "
            "instead of an item() for each. Better every 50th step or so, if no step needs them."
        )
    return (
        "If the step itself does not need the value: leave it on the GPU (total += loss.detach()) "
        "and read it every 50th step or so, or copy it into pinned memory (non_blocking=True) and "
        "read it one step later."
    )
