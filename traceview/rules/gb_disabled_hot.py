"""
## What it finds
A function that the script keeps out of the graph itself: with `torch.compiler.disable`, or by
calling `torch._dynamo.graph_break()`.

## Why it costs
The graph ends before it and a second one starts after it. What the function does runs in eager,
operator by operator, and nothing fuses with it.

## Evidence
A graph break of torch's type GB0098, GB0099 or GB0025 at the call. The time inside is that of the
function's lines in the profiled compiled steps. Matrix products, convolutions and attention run in
the same kernels when compiled; the rest is the most that compiling it can save.

A warning where more than `hot_share` of the compiled step is spent inside and that rest is more
than 5 % of the step or 0.05 ms. Otherwise it is information: the script asks for it.

## What to do
Remove the decorator if its reason is gone. `recursive=False` keeps only the function itself in
eager, and what it calls is compiled. Call it after the compiled function if nothing there needs its
result.

## Settings
- `hot_share`: part of the compiled step, 0 to 1, above which it is a warning.

## References
- https://docs.pytorch.org/docs/stable/generated/torch.compiler.disable.html
- https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0098.html
- torch/_dynamo/variables/functions.py, `SkipFunctionVariable.call_function`
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from traceview.derive.facts.rows import timed_scale
from traceview.derive.origins.work import LIBRARY
from traceview.rules import _breaks
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Location,
    Row,
    Tables,
    first_rank,
    frame,
    milliseconds,
    percent,
    rows,
    severity,
    step_ms,
)

CODE = "TV108"
NEEDS = frozenset({"break_sites"})
SEVERITIES = ("warning", "info")
EXPLAINS = frozenset({"graph_break", "idle_graph_break", "overheads_added"})

HOT_SHARE = 0.20
#: Work of libraries, which runs in the same kernels compiled.
_NAMED = re.compile(r"<(?:function|bound method) ([\w.<>]+) (?:at|of)\b")
_REASON = re.compile(r"\(reason: (?!None\))(.+?)\)\s*$")

_ASKED = "Remove the call if its reason is gone."
_DISABLED = (
    "Remove torch.compiler.disable if its reason is gone. With recursive=False only the function "
    "itself stays in eager and what it calls is compiled. If nothing in the compiled function "
    "needs its result, call it afterwards."
)


def check(tables: Tables, *, hot_share: float = HOT_SHARE) -> Iterator[Finding]:
    """One finding per line that calls what the script keeps out of the graph."""
    step = first_rank(rows(tables, "account_details", stance="compiled"))
    for site in _breaks.resumable(tables, "asked", "disabled"):
        spent = _inside(tables, site.place, step)
        inside, whole = _ms(spent), _ms(step)
        cost, confidence = _breaks.cost(tables, site)
        evidence = [*site.evidence()]
        if spent:  # the time inside that is no library's, of the step as timed
            scale = timed_scale(step_ms(tables, "compiled"), whole) or 1.0
            library = scale * _ms([row for row in spent if row["category"] in LIBRARY])
            less = f", less {milliseconds(library)} of matrix products and the like"
            about = f"time inside it, in eager{less if library else ''}"
            about += "; compiling it would save a part of that"
            cost, confidence = Cost(scale * inside - library, None, about), "derived"
            text = (
                f"{milliseconds(inside)} of the {milliseconds(whole)} that the profile shows of a "
                "compiled step are inside"
            )
            evidence.append(Evidence(text, "account_details"))

        row, asked = site.rows[0], "asked" in site.rows[0]["kinds"]
        named = _NAMED.search(row["context"] or row["gb_type"] or "")
        hot = inside > hot_share * whole and not asked
        what = f"{f'{named[1]}()' if named else 'a function'} is kept out of the graph"
        if hot:
            what += f" and takes {percent(inside / whole)} of the step"
        elif asked:
            what = "the script calls graph_break()"
        reason = _REASON.search(row["explanation"] or "")
        yield Finding(
            code=CODE,
            rule="gb-disabled-hot",
            severity=severity(tables, cost.ms_per_step) if hot else "info",
            title=_breaks.title(site, what),
            explanation=(
                "The script asks torch not to compile it"
                + (f" (reason given: {reason[1]})" if reason else "")
                + ": Dynamo ends the graph before the call, Python makes it in eager, and the code "
                "after it is compiled separately."
            ),
            cost=cost,
            confidence=confidence,
            location=site.place,
            inside=site.inside,
            about=site.about,
            evidence=tuple(evidence),
            what_to_do=_breaks.at_call(site, _ASKED if asked else _DISABLED, None)[0],
        )


def _inside(tables: Tables, place: Location | None, step: list[Row]) -> list[Row]:
    """What a profiled compiled step spends on the line of ``place`` and on those that it leads to.

    Operators of compiled code have no line there; entering compiled code is no part of it.
    """
    if place is None:
        return []
    lines = frame(tables, "line_ops", kind="line").sort("start_ns")
    here = (pl.col("file") == place.file) & (pl.col("line") == place.line)
    calls = lines.filter(here).select(
        "stance", "tid", "start_ns", until=pl.col("start_ns") + pl.col("duration_ns")
    )
    # The user's lines that the call led to, in either stance's marked step.
    below = lines.filter(~here).join_asof(
        calls, on="start_ns", by=["stance", "tid"], check_sortedness=False
    )
    below = below.filter(pl.col("start_ns") < pl.col("until"))
    within = {(place.file, place.line), *below.select("file", "line").unique().iter_rows()}
    return [
        row
        for row in step
        if (row["file"], row["line"]) in within and not row["category"].startswith("overhead_")
    ]


def _ms(spent: list[Row]) -> float:
    return sum(row["ms"] or 0.0 for row in spent)
