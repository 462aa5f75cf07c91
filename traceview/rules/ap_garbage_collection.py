"""
## What it finds
Steps that spend much of their time in Python's garbage collector: `gc.collect()` called in each of
them, or in every tenth, or collections by themselves so often that they add up.

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

from traceview.rules.kit import (
    NOTABLE_SHARE,
    Cost,
    Evidence,
    Finding,
    Location,
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
#: Less of a step is hard to tell from noise.
LEAST_SHARE = NOTABLE_SHARE


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """At most one finding, at the line where collecting takes most time."""
    where = first_rank(rows(tables, "host_stalls", kind="collection"))
    ms, step = sum(row["ms"] for row in where), step_ms(tables, "compiled") or 0.0
    if not where or not step or ms < least_share * step or (where[0]["steps"] or 0.0) < MOST_STEPS:
        blocks = first(tables, "block_collections", stance="compiled")
        if blocks is None or blocks["count"] * blocks["steps"] < FEWEST:
            return
        where, ms, step, asked = [blocks], blocks["ms"], blocks["step_ms"], blocks["full"] >= FEWEST
        proof = Evidence(
            f"{plural(round(blocks['count'] * blocks['steps']), 'collection')} in "
            f"{plural(blocks['steps'], 'timed step')}, {blocks['full']} of all generations, in "
            f"{blocks['with']} of {plural(blocks['blocks'], 'block')}",
            "block_collections",
        )
    else:
        asked = where[0]["full"] >= MOST_STEPS
        count = plural(round(sum(row["count"] or 0.0 for row in where)), "collection")
        text = f"{count} per step, {where[0]['full']:.3g} of all generations"
        proof = Evidence(text, "host_stalls")
    if not ms or ms < least_share * step:
        return
    places = [Location(row["file"], row["line"]) for row in where if row["file"] and row["line"]]
    at = f" ({short(places[0])})" if places else ""
    yield Finding(
        code=CODE,
        rule="ap-garbage-collection",
        severity="warning",
        title=f"{percent(min(1.0, ms / step))} of a step is Python's garbage collector{at}",
        explanation=(
            f"It takes {milliseconds(ms)} of {milliseconds(step)}, in eager and compiled steps "
            "alike, and no Python runs meanwhile."
        ),
        cost=Cost(ms, None, "time of a compiled step in Python's garbage collector"),
        confidence="measured",
        location=places[0] if places else None,
        evidence=(proof,),
        what_to_do=(
            "Leave gc.collect() out of the steps: tensors are freed without it. Where cycles of "
            "objects hold memory, call it every few hundred steps."
            if asked
            else "Take what is there after the first steps out of every later collection, or make "
            "fewer objects per step."
        ),
        snippet=None if asked else Snippet("python", "gc.collect()\ngc.freeze()"),
        also_at=tuple(places[1:4]),
    )
