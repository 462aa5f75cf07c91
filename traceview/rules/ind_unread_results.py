"""
## What it finds
Results of a compiled function that the script's loop reads in some of its steps only, or never, and
that are much of what the generated kernels write and read.

## Why it costs
What a graph returns has to be written to memory. Values that are used inside of it alone stay in
registers, which is most of what fusion gains. Returned "in case", as diagnostics, rates or
intermediate fields, each costs its bytes in every step. In eager it costs nothing: there every
intermediate value is written anyway.

## Evidence
The source of the loop that calls it: names which items of the result get, and whose uses are all
below a test by `%` (`if step % 1000 == 0:`) or behind the loop, or which have none. How large the
items are is known from the call that is made again at the script's end. The cost is that part of
the generated kernels' time that these bytes are of all that they move: at most, since what is
computed for them goes as well, and since arithmetic may take longer than memory.

## What to do
Return them when they are asked for: an argument such as `want_rates=False` makes two graphs, one
without them. Or compute them in a function of their own, in the steps that print them.

## Settings
- `least_share`: part of the compiled step, 0 to 1, that these results must take.

## References
- https://docs.pytorch.org/docs/stable/torch.compiler_inductor_profiling.html
- torch/_inductor/scheduler.py, `dead_node_elimination`
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.derive.facts.rows import timed_scale
from traceview.rules.kit import (
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
    rows,
    severity,
    short,
    size,
    step_ms,
)
from traceview.words.text import listed

CODE = "TV449"
NEEDS = frozenset({"result_names", "end_checks", "kernel_limits", "step_counts"})
SEVERITIES = ("warning", "info")

#: Less is not worth another signature.
LEAST_SHARE = 0.15


def unread(tables: Tables) -> Iterator[tuple[Location, list[tuple[Row, int]]]]:
    """Calls, each with the items of its result that are seldom read, and their bytes."""
    given = {
        row["region_id"]: row["result_bytes"]
        for row in first_rank(rows(tables, "end_checks"))
        if row["result_bytes"]
    }
    calls: dict[tuple[str, int, int], list[tuple[Row, int]]] = {}
    for row in first_rank(rows(tables, "result_names")):
        sizes = given.get(row["region_id"]) or ()
        if len(sizes) == row["items"] and (moved := sizes[row["item"]]):
            call = row["file"], row["line"], row["region_id"]
            calls.setdefault(call, []).append((row, moved))
    for (file, line, _), items in calls.items():
        yield Location(file, line), items


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """One finding for each call."""
    step, timed = step_ms(tables, "compiled"), first(tables, "step_counts", stance="compiled")
    kernels = [
        row
        for row in first_rank(rows(tables, "kernel_limits", stance="compiled"))
        if row["category"].startswith("generated_") and row["bytes"] and row["ms"]
    ]
    moved = sum(row["bytes"] * row["count"] for row in kernels)
    busy = sum(row["ms"] for row in kernels)
    scale = timed_scale(timed["timed_step_ms"], timed["step_ms"]) if timed else None
    if not (step and moved and scale):
        return
    for place, items in unread(tables):
        written = sum(size_of for _, size_of in items)
        ms = busy * scale * min(1.0, written / moved)
        if ms < least_share * step:
            continue
        names = listed([row["name"] for row, _ in items])
        seldom = any(row["read"] == "sometimes" for row, _ in items)
        verb = "is" if len(items) == 1 else "are"
        how = f"{verb} read in some steps only, but" if seldom else f"{verb} never read, but"
        yield Finding(
            code=CODE,
            rule="ind-unread-results",
            severity=severity(tables, ms),
            title=(
                f"{names} ({short(place)}) {how} written in every step: {size(written)}, up to "
                f"{milliseconds(ms)} of the step ({percent(ms / step)})"
            ),
            explanation=(
                f"The generated kernels move {size(moved)} a step. What a graph returns is written "
                "to memory; what is used inside of it alone stays in registers."
            ),
            cost=Cost(ms, None, "at most, by the bytes that the generated kernels move"),
            confidence="heuristic",
            location=place,
            evidence=tuple(
                Evidence(
                    f"{row['name']}: item {row['item']} of {row['items']}, {size(size_of)}, "
                    f"read {row['read']}",
                    "result_names",
                )
                for row, size_of in items
            ),
            what_to_do=(
                "Return what is seldom read only when it is asked for, by an argument, which makes "
                "a graph without it; or compute it in a function of its own."
            ),
            snippet=Snippet("python", "state, rates = step(state, want_rates=n % 1000 == 0)"),
            weighs=True,
        )
