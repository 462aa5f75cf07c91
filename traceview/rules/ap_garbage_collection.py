"""
## What it finds
Steps that spend much of their time in Python's garbage collector: `gc.collect()` called in each of
them or every few dozen, or collections by themselves so often that they add up.

## Why it costs
A full collection looks at every object of the process: torch alone makes some hundred thousand, and
compiling as many again, so one takes tens or hundreds of milliseconds. No Python runs meanwhile,
and the GPU waits. Eager and compiled steps pay the same, so compiling gains less than it could.

## Evidence
Python's own callback marks each collection in the profiler window. It runs in at least half
of the steps there, and takes at least 5 % of the step as timed. On a GPU only what the device waits
for counts. Where the window shows none in most steps, the timed blocks do, with at least five
collections that take 5 % of their time; on a GPU, blocks with collections take that much longer
than others. A full collection in most steps, or five in these blocks, is a call of `gc.collect()`,
the user's or a library's: by itself Python makes one only when the heap has grown by a quarter.
Calls of `gc.collect()` that are further apart are heard from the first timed block on: three or
more that one line leads to, and the time from one to the next.

## What to do
Leave the call out: tensors are freed without it, as soon as nothing refers to them. Where cycles of
objects hold memory, call it every few hundred steps. `gc.freeze()` after the first steps takes what
is there by then out of every later collection.

## Settings
- `least_share`: part of the compiled step, 0 to 1, that collections must take.

## References
- https://docs.pytorch.org/docs/stable/notes/faq.html
- https://docs.python.org/3/library/gc.html
- torch/utils/checkpoint.py
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from traceview.rules.kit import (
    NOTABLE_SHARE,
    Cost,
    Evidence,
    Finding,
    Location,
    Row,
    Snippet,
    Tables,
    first,
    first_rank,
    milliseconds,
    percent,
    plural,
    rows,
    short,
    step_ms,
)

CODE = "TV421"
NEEDS = frozenset({"host_stalls|block_collections", "step_counts|block_collections"})
SEVERITIES = ("warning",)

#: What happens in fewer steps of a short window may be there by chance.
MOST_STEPS = 0.50
#: Fewer in all blocks may be there by chance; Python makes as many full ones only if the heap
#: becomes three times as large meanwhile.
FEWEST = 5
#: Fewer calls of gc.collect may be those of a script's phases.
FEWEST_CALLS = 3
#: Less of a step is hard to tell from noise.
LEAST_SHARE = NOTABLE_SHARE


class _Seen(NamedTuple):
    """Collections: rows with their lines, ms of a step of ``step`` ms; ``asked``: by a call."""

    where: list[Row]
    ms: float
    step: float
    asked: bool
    proof: Evidence


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """At most one finding, at the line where collecting takes most time."""
    step = step_ms(tables, "compiled") or 0.0
    known = (way for way in _ways(tables, step) if way.ms and way.step)
    seen = next((way for way in known if way.ms >= least_share * way.step), None)
    if seen is None:
        return
    places = [
        Location(row["file"], row["line"]) for row in seen.where if row["file"] and row["line"]
    ]
    at, share = f" ({short(places[0])})" if places else "", min(1.0, seen.ms / seen.step)
    yield Finding(
        code=CODE,
        rule="ap-garbage-collection",
        severity="warning",
        title=f"{percent(share)} of a step is Python's garbage collector{at}",
        explanation=(
            f"It takes {milliseconds(seen.ms)} of {milliseconds(seen.step)}, in eager and compiled "
            "steps alike, and no Python runs meanwhile."
        ),
        cost=Cost(seen.ms, None, "time of a compiled step in Python's garbage collector"),
        confidence="measured",
        location=places[0] if places else None,
        evidence=(seen.proof,),
        what_to_do=(
            "Leave gc.collect() out of the steps: tensors are freed without it. Where cycles of "
            "objects hold memory, call it every few hundred steps."
            if seen.asked
            else "Take what is there after the first steps out of every later collection, or make "
            "fewer objects per step."
        ),
        snippet=None if seen.asked else Snippet("python", "gc.collect()\ngc.freeze()"),
        also_at=tuple(places[1:4]),
    )


def _ways(tables: Tables, step: float) -> Iterator[_Seen]:
    """In the window's steps; in the timed blocks; from one call of ``gc.collect`` to the next."""
    where = first_rank(rows(tables, "host_stalls", kind="collection"))
    if where and (where[0]["steps"] or 0.0) >= MOST_STEPS:
        count = plural(round(sum(row["count"] or 0.0 for row in where)), "collection")
        text = f"{count} per step, {where[0]['full']:.3g} of all generations"
        ms = sum(row["ms"] for row in where)
        yield _Seen(where, ms, step, where[0]["full"] >= MOST_STEPS, Evidence(text, "host_stalls"))
    blocks = first(tables, "block_collections", stance="compiled")
    if blocks and blocks["count"] * blocks["steps"] >= FEWEST:
        text = (
            f"{plural(round(blocks['count'] * blocks['steps']), 'collection')} in "
            f"{plural(blocks['steps'], 'timed step')}, {blocks['full']} of all generations, in "
            f"{blocks['with']} of {plural(blocks['blocks'], 'block')}"
        )
        proof = Evidence(text, "block_collections")
        yield _Seen([blocks], blocks["ms"], blocks["step_ms"], blocks["full"] >= FEWEST, proof)
    for calls in first_rank(rows(tables, "collect_periods"))[:1]:
        ms, every = calls["call_ms"], calls["every_ms"]
        if calls["calls"] >= FEWEST_CALLS:
            a_step = ms * step / (every - ms)  # in between are as many steps as fit there
            text = (
                f"gc.collect() takes {milliseconds(ms)} each time, and starts again after "
                f"{milliseconds(every)}: {plural(calls['calls'], 'call')}"
            )
            proof = Evidence(text, "collect_periods")
            yield _Seen([calls], a_step, step + a_step, True, proof)
