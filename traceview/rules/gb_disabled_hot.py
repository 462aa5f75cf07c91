"""
## What it finds
A function that the script keeps out of the graph itself: with `torch.compiler.disable`, or by
calling `torch._dynamo.graph_break()`.

## Why it costs
The graph ends before it and a second one starts after it. What the function does runs in eager,
operator by operator, and nothing fuses with it.

## Evidence
A graph break of torch's type GB0098, GB0099 or GB0025 at the call. The time inside is that of the
function's lines in the profiled compiled steps. What of it are matrix products, convolutions and
attention runs in the same kernels when compiled; the rest is the most that compiling it can save.

A warning where more than `hot_share` of the compiled step is spent inside and that rest is more
than 5 % of the step or 0.05 ms. Otherwise information: it is what the script asks for.

## What to do
Drop the decorator if its reason is gone. `recursive=False` keeps only the function itself in eager,
and what it calls is compiled. Move it behind the compiled function if nothing needs its result.

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

from traceview.rules import _break_costs, _break_kinds, _breaks, _costs, _places
from traceview.rules._rows import Row, first_rank, frame, rows
from traceview.rules.finding import Confidence, Cost, Evidence, Finding, Location
from traceview.tables import Tables
from traceview.words.numbers import milliseconds, percent

CODE = "TV108"
NEEDS = frozenset({"graph_breaks"})
EXPLAINS = frozenset({"graph_break", "idle_graph_break", "overheads_added"})

HOT_SHARE = 0.20
#: Work of libraries, which runs in the same kernels compiled.
_LIBRARY = ("gemm", "convolution", "attention")
_ASKED = "graph_break()"
_NAMED = re.compile(r"<(?:function|bound method) ([\w.<>]+) (?:at|of)\b")
_REASON = re.compile(r"\(reason: (?!None\))(.+?)\)\s*$")


def check(tables: Tables, *, hot_share: float = HOT_SHARE) -> Iterator[Finding]:
    """One finding a line that calls what the script keeps out of the graph."""
    breaks = tables.once(_break_costs.Breaks)
    step = first_rank(rows(tables, "account_details", stance="compiled"))
    for site in _breaks.resumable(tables, _break_kinds.is_wanted):
        spent = _inside(tables, site.place, step)
        cost, confidence = _cost(tables, spent, step) or breaks.cost(site)
        hot = _ms(spent) > hot_share * _ms(step) and _name(site) != _ASKED
        yield Finding(
            code=CODE,
            rule="gb-disabled-hot",
            severity=_costs.severity(tables, cost.ms_per_step) if hot else "info",
            title=_title(tables, site, _ms(spent) / _ms(step) if hot else None),
            explanation=_explanation(site),
            cost=cost,
            confidence=confidence,
            location=site.place,
            inside=site.inside,
            about=site.about,
            evidence=(*site.evidence(), *_proof(spent, step)),
            what_to_do=_remedy(site),
        )


def _inside(tables: Tables, place: Location | None, step: list[Row]) -> list[Row]:
    """What a profiled compiled step spends on the line of ``place`` and on those that it leads to.

    Operators of compiled code have no line there; entering compiled code is no part of it.
    """
    if place is None:
        return []
    lines = {(place.file, place.line)} | _lines_below(tables, place)
    return [
        row
        for row in step
        if (row["file"], row["line"]) in lines and not row["category"].startswith("overhead_")
    ]


def _lines_below(tables: Tables, place: Location) -> set[tuple[str, int]]:
    """The user's lines that the call at ``place`` led to, in either stance's marked step."""
    lines = frame(tables, "line_ops", kind="line").sort("start_ns")
    here = (pl.col("file") == place.file) & (pl.col("line") == place.line)
    calls = lines.filter(here).select(
        "stance", "tid", "start_ns", until=pl.col("start_ns") + pl.col("duration_ns")
    )
    below = lines.filter(~here).join_asof(
        calls, on="start_ns", by=["stance", "tid"], check_sortedness=False
    ).filter(pl.col("start_ns") < pl.col("until"))  # fmt: skip
    return set(below.select("file", "line").unique().iter_rows())


def _ms(spent: list[Row]) -> float:
    return sum(row["ms"] or 0.0 for row in spent)


def _cost(tables: Tables, spent: list[Row], step: list[Row]) -> tuple[Cost, Confidence] | None:
    """The time inside that is no library's, of the step as timed; None without its lines."""
    if not spent:
        return None
    timed, seen = _costs.step_ms(tables, "compiled"), _ms(step)
    scale = min(1.0, timed / seen) if timed and seen else 1.0
    library = scale * _ms([row for row in spent if row["category"] in _LIBRARY])
    about = "time inside it, in eager"
    if library:
        about += f", less {milliseconds(library)} of matrix products and the like"
    about += "; compiling it would save a part of that"
    return Cost(ms_per_step=scale * _ms(spent) - library, about=about), "derived"


def _title(tables: Tables, site: _breaks.Site, share: float | None) -> str:
    """``share``: the part of the step that is spent in it, where it is that which costs."""
    name, cut = _name(site), _breaks.effect(tables, site)
    at = f"{name} at {_places.short(site.place)}"
    if name == _ASKED:
        return f"{at} {cut}"
    if share is None:
        return f"{at} is kept out of the graph: it {cut}"
    return f"{at} is kept out of the graph: {percent(share)} of the step is spent in it"


def _name(site: _breaks.Site) -> str:
    row = site.rows[0]
    if _break_kinds.is_asked(row):
        return _ASKED
    named = _NAMED.search(row["context"] or row["gb_type"] or "")
    return f"{named[1]}()" if named else "a function"


def _explanation(site: _breaks.Site) -> str:
    reason = _REASON.search(site.rows[0]["explanation"] or "")
    return (
        "It is not to be compiled"
        + (f" (reason given: {reason[1]})" if reason else "")
        + ": Dynamo ends the graph before the call, Python makes it in eager, and what follows is "
        "compiled by itself."
    )


def _proof(spent: list[Row], step: list[Row]) -> tuple[Evidence, ...]:
    if not spent:
        return ()
    inside, whole = milliseconds(_ms(spent)), milliseconds(_ms(step))
    text = f"{inside} of the {whole} that the profile shows of a compiled step lie inside"
    return (Evidence(text, "account_details"),)


def _remedy(site: _breaks.Site) -> str:
    if _name(site) == _ASKED:
        return "Take the call away if its reason is gone."
    return (
        "Drop torch.compiler.disable if its reason is gone. With recursive=False only the function "
        "itself stays in eager and what it calls is compiled. If nothing in the compiled function "
        "needs its result, call it afterwards."
    )
