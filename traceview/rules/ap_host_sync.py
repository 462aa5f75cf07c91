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
without the line's reads. The difference is the cost: a host that does not wait reaches everything
after it earlier, up to where the GPU is the slower of the two. Where the host is the slower one
anyway, a wait costs next to nothing and is not reported.

A line that reads several values in each step finds the GPU without work each time. It is played
without anything that it does outside of compiled graphs: all of that goes where the values are read
less often. Neighboring lines that read the same number of values are one place.

The rule skips lines where a graph breaks, explicit synchronization (a benchmark wants it) and lines
where only a library asks for a value. A warning where single values are read and it is 5 % of the
compiled step or more. Otherwise information: a tensor that leaves the GPU may be the result.

## What to do
Keep the value on the GPU (`total += loss.detach()`) and read it every 50th step or so; copy it with
`non_blocking=True` into pinned memory and read it a step later. Where many values are read one at a
time, read them together (`torch.stack(values).tolist()`).

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
from traceview.rules.kit import (
    NOTABLE_SHARE,
    Cost,
    Evidence,
    Finding,
    Location,
    Tables,
    first_rank,
    milliseconds,
    percent,
    rows,
    short,
    step_ms,
)

CODE = "TV503"
NEEDS = frozenset({"read_places", "step_counts"})
SEVERITIES = ("warning", "info")
GPU_ONLY = True

LEAST_SHARE = 0.01
_SEVERAL = (
    "Gather the values on the GPU and read them with one copy, torch.stack(them).tolist() instead "
    "of an item() for each. If no step needs them, read them every 50th step or so."
)
_ONE = (
    "If the step itself does not need the value, leave it on the GPU (total += loss.detach()) and "
    "read it every 50th step or so, or copy it into pinned memory (non_blocking=True) and read it "
    "one step later."
)


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """One finding for each place, most expensive first."""
    step = step_ms(tables, "compiled")
    for place in first_rank(rows(tables, "read_places", stance="compiled")):
        scalars, saved = place["scalars"], place["saved_ms"]
        if not step or saved < least_share * step:
            continue
        count = scalars + place["tensors"]
        line, *others = (Location(place["file"], number) for number in place["lines"])
        where = f"{short(line)} to {others[-1].line} wait" if others else f"{short(line)} waits"
        replay = f"a step of {milliseconds(step)} takes {milliseconds(place['without_ms'])}"
        expensive = scalars and saved >= NOTABLE_SHARE * step
        yield Finding(
            code=CODE,
            rule="ap-host-sync",
            severity="warning" if expensive else "info",
            title=f"{where} for the GPU: up to {percent(saved / step)} of a step",
            explanation=(
                "The host needs a value from the GPU, so it waits until everything that it "
                "launched is done, and the GPU then waits for the next launches."
            ),
            cost=Cost(
                saved, None, "time that a compiled step saves if the host does not wait here"
            ),
            confidence="derived",
            location=line,
            also_at=tuple(others),
            evidence=(
                Evidence(
                    f"{place['asks']} there, {count:.3g} {'copy' if count == 1 else 'copies'} to "
                    f"the host per step: it waits {milliseconds(place['waited_ms'])} for them, as "
                    "profiled",
                    "read_places",
                ),
                Evidence(f"played again without them, {replay}", "read_places"),
            ),
            what_to_do=_SEVERAL if scalars >= SEVERAL else _ONE,
        )
