"""
## What it finds
`mode="reduce-overhead"` (or "max-autotune") that records no cudagraph, because the compiled code
writes into one of its arguments.

## Why it costs
A cudagraph replays fixed addresses and reads its own copies of the inputs, so a write into an
input would be lost. torch skips the recording: every launch is made separately, as without the
mode.

## Evidence
torch's message "skipping cudagraphs due to mutated inputs" with the line that writes. The cost is
the time in which the GPU waits for launches: information where that is little, as then the kernels
are what takes the time.

## What to do
Return the new state instead of writing it in place, or make it a buffer of the module: parameters
and buffers keep their addresses and may be written.

## References
- https://docs.pytorch.org/docs/stable/torch.compiler_cudagraph_trees.html
- torch/_inductor/cudagraph_utils.py, `check_for_mutation`
- https://github.com/pytorch/pytorch/issues/121861
- https://github.com/pytorch/pytorch/issues/117281
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules._gain import idle_ms
from traceview.rules.kit import (
    Cost,
    Finding,
    Owners,
    Row,
    Spot,
    Tables,
    from_row,
    plural,
    rows,
    severity,
    short,
    shorten,
)
from traceview.torchtext.cudagraphs import instances, skip_cause

CODE = "TV510"
NEEDS = frozenset({"compiles", "cudagraph_events"})
SEVERITIES = ("warning", "info")
GPU_ONLY = True


def check(tables: Tables) -> Iterator[Finding]:
    """One finding for each line that writes into an input."""
    owners = Owners(tables)
    found: dict[str, list[Row]] = {}
    spots: dict[str, Spot] = {}
    table, column = "cudagraph_events", "reason"
    skips = _said(rows(tables, "cudagraph_events", event="skip"), column)
    if not skips:  # then the compiles' metrics may have kept it
        table, column = "compiles", "cudagraph_skip_reason"
        skips = _said(rows(tables, "compiles"), column)
    for row in skips:
        spot = owners.spot(row) if table == "cudagraph_events" else owners.code(row)
        name = short(spot.place)
        spots.setdefault(name, spot)
        found.setdefault(name, []).append(row)
    if len(found) > 1:  # the same skip as logged without its line
        found.pop(short(None), None)
    for name, group in found.items():
        count = instances(group[0][column])
        inputs = "an input" if count is None else plural(count, "input")
        idle = idle_ms(tables, "launch")
        about = "time of a compiled step in which the GPU waits for launches: the most it can save"
        unknown = "the launches that one cudagraph would replace; not measured"
        yield Finding(
            code=CODE,
            rule="cg-skip-mutation",
            severity=severity(tables, idle),
            title=f"No cudagraph: the code writes into {inputs} at {name}",
            explanation=(
                "A cudagraph replays on its own copies of the inputs, so torch records none where "
                "an input is written. The mode's launches are made one at a time."
            ),
            cost=Cost(about=unknown) if idle is None else Cost(idle, None, about),
            confidence="heuristic" if idle is None else "derived",
            location=spots[name].place,
            inside=spots[name].inside,
            about=owners.about_compiles(*group),
            evidence=tuple(from_row(shorten(row[column]), table, row) for row in group[:3]),
            what_to_do=(
                "Return the new value instead of writing it in place, or register the tensor as a "
                "buffer of the module: buffers keep their addresses and may be written."
            ),
        )


def _said(found: list[Row], column: str) -> list[Row]:
    return [row for row in found if skip_cause(row[column] or "") == "mutation"]
