"""
## What it finds
`mode="reduce-overhead"` (or "max-autotune") that records no cudagraph, because the compiled code
writes into one of its arguments.

## Why it costs
A cudagraph replays fixed addresses and reads its own copies of the inputs, so a write into an
input would go astray. torch skips the recording: every launch is made one by one, as without the
mode.

## Evidence
torch's message "skipping cudagraphs due to mutated inputs" with the line that writes.

## What to do
Give back the new state instead of writing it, or make it a buffer of the module: parameters and
buffers keep their addresses and may be written.

## References
- https://docs.pytorch.org/docs/stable/torch.compiler_cudagraph_trees.html
- torch/_inductor/cudagraph_utils.py, `check_for_mutation`
- https://github.com/pytorch/pytorch/issues/121861
- https://github.com/pytorch/pytorch/issues/117281
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traceview.rules import _places
from traceview.rules._device import idle_ms
from traceview.rules._evidence import from_row
from traceview.rules._rows import Row, rows
from traceview.rules.finding import Confidence, Cost, Evidence, Finding
from traceview.tables import Tables
from traceview.words.numbers import plural
from traceview.words.text import shorten

CODE = "TV510"
NEEDS = frozenset({"compiles", "cudagraph_events"})
GPU_ONLY = True

_COUNT = re.compile(r"\((\d+) instances?\)")
_WORDS = "mutated inputs"


def check(tables: Tables) -> Iterator[Finding]:
    """One finding a line that writes into an input."""
    found: dict[str, list[tuple[str, Row]]] = {}
    owners = _places.Owners(tables)
    for table, row, reason in _skips(tables):
        place = _spot(owners, table, row).place
        found.setdefault(_places.short(place), []).append((table, {**row, "_reason": reason}))
    if len(found) > 1:  # the same skip as logged without its line
        found.pop(_places.short(None), None)
    for group in found.values():
        yield _finding(tables, owners, group)


def _skips(tables: Tables) -> Iterator[tuple[str, Row, str]]:
    """(table, row, reason): the log's lines, else what the compile's metrics kept."""
    logged = [
        row
        for row in rows(tables, "cudagraph_events", event="skip")
        if _WORDS in (row["reason"] or "")
    ]
    for row in logged:
        yield "cudagraph_events", row, row["reason"]
    for row in [] if logged else rows(tables, "compiles"):
        if _WORDS in (row["cudagraph_skip_reason"] or ""):
            yield "compiles", row, row["cudagraph_skip_reason"]


def _spot(owners: _places.Owners, table: str, row: Row) -> _places.Spot:
    return owners.spot(row) if table == "cudagraph_events" else owners.code(row)


def _finding(tables: Tables, owners: _places.Owners, group: list[tuple[str, Row]]) -> Finding:
    table, row = group[0]
    spot = _spot(owners, table, row)
    place = spot.place
    count = _COUNT.search(row["_reason"])
    inputs = plural(int(count[1]), "input") if count else "an input"
    cost, confidence = _cost(tables)
    return Finding(
        code=CODE,
        rule="cg-skip-mutation",
        severity="warning",
        title=f"No cudagraph: the code writes into {inputs} at {_places.short(place)}",
        explanation=(
            "A cudagraph replays on its own copies of the inputs, so torch records none where an "
            "input is written. The mode's launches are made one by one."
        ),
        cost=cost,
        confidence=confidence,
        location=place,
        inside=spot.inside,
        about=owners.about_compiles(*(entry for _, entry in group)),
        evidence=tuple(_proof(name, entry) for name, entry in group[:3]),
        what_to_do=(
            "Give the new value back instead of writing it in place, or register the tensor as a "
            "buffer of the module: those keep their addresses and may be written."
        ),
    )


def _proof(table: str, row: Row) -> Evidence:
    return from_row(shorten(row["_reason"]), table, row)


def _cost(tables: Tables) -> tuple[Cost, Confidence]:
    """Idle time that launches cause: what a cudagraph would take away at most."""
    idle = idle_ms(tables, "compiled", "launch")
    if idle is None:
        about = "the launches that one cudagraph would have replaced; not measured"
        return Cost(about=about), "heuristic"
    about = "time of a compiled step in which the GPU waits for launches: the most it could save"
    return Cost(ms_per_step=idle, about=about), "derived"
