"""
## What it finds
A graph break inside a `for`, `while`, `try` or `with` that makes Dynamo leave the whole function
in eager.

## Why it costs
Dynamo cannot resume in the middle of such a block. It gives the frame up: nothing in it is
compiled, only the functions that it calls are, each on its own. A loop over layers then runs as
eager code, in most cases the whole model.

## Evidence
A graph break that the log marks as skipping the frame, and the outcome `skipped` of that compile.
The cost is the host time between the pieces that still compile, in the profiler window; on a GPU
what it idles meanwhile, and the function's operators there that no compiled graph holds.

## What to do
Take the line that breaks out of the loop or the block: decide before it, after it, or in the
caller. Where only the loop's body is worth compiling, make it a function and compile that.

## References
- https://docs.pytorch.org/docs/stable/compile/programming_model.skipped_functions.html
- https://meta-pytorch.github.io/compile-graph-break-site/gb/gb7000.html
- torch/_dynamo/symbolic_convert.py, `break_graph_if_unsupported`
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules import _break_costs, _breaks, _callees, _costs, _places, _recompiles
from traceview.rules._evidence import from_row
from traceview.rules._rows import Row, rows
from traceview.rules.finding import Confidence, Cost, Evidence, Finding
from traceview.tables import Tables
from traceview.torchtext.frames import readable_name
from traceview.words.numbers import seconds
from traceview.words.text import shorten

CODE = "TV104"
NEEDS = frozenset({"graph_breaks", "compiles"})
EXPLAINS = frozenset({"graph_break", "idle_graph_break", "overheads_added"})

_SKIPS = "torch.compile will skip tracing the frame"
_FUNCTORCH = "functorch"
_TAKE_OUT = (
    "Take this line out of the loop or block: decide before it, after it, or in the caller. If "
    "only the loop's body is worth compiling, make it a function and compile that one."
)


def check(tables: Tables) -> Iterator[Finding]:
    """One finding a line whose break made Dynamo give the frame up."""
    breaks, owners = tables.once(_break_costs.Breaks), _places.Owners(tables)
    compiles = {row["compile_key"]: row for row in rows(tables, "compiles")}
    for site in _breaks.sites(tables):
        if not site.skipped:
            continue
        frames = [
            compiles[row["compile_key"]] for row in site.rows if row["compile_key"] in compiles
        ]
        own = (row["co_name"] for row in frames if row["co_name"] and not owners.code(row).inside)
        name = next(own, None)  # not torch's wrapper around it
        why = _cause(site, frames)
        function = readable_name(name) if name else "the function"
        cost, confidence = _cost(breaks.cost(site), frames)
        yield Finding(
            code=CODE,
            rule="gb-frame-skipped",
            severity=_costs.severity(tables, cost.ms_per_step),
            title=f"{_recompiles.opening(function)} runs in eager: {_headline(site, why)}",
            explanation=_explanation(site, function, why),
            cost=cost,
            confidence=confidence,
            location=site.place,
            inside=site.inside,
            about=site.about,
            evidence=(*site.evidence(), *_outcomes(frames)),
            what_to_do=_remedy(site, why),
        )


def _headline(site: _breaks.Site, why: str) -> str:
    if _is_of_line(site):
        return f"a graph break at {_places.short(site.place)} cannot resume"
    return f"Dynamo gives it up ({shorten(why, 80)})"


def _explanation(site: _breaks.Site, function: str, why: str) -> str:
    left = f"leaves all of {function} in eager and compiles at most the functions that it calls."
    if _is_of_line(site):
        return (
            f"The break ({shorten(why)}) lies inside a loop, try or with block. Dynamo cannot "
            f"resume there, so it {left}"
        )
    return f"Dynamo cannot begin with it ({shorten(why)}), so it {left}"


def _remedy(site: _breaks.Site, why: str) -> str:
    if _FUNCTORCH in why:
        return (
            "Compile the outermost function, the one that calls torch.func.grad, vmap or the like, "
            "in the place of the one that they call."
        )
    return _callees.DRAW if _callees.is_random(_callees.callee(site)) else _TAKE_OUT


def _is_of_line(site: _breaks.Site) -> bool:
    """Whether the log names the line that broke, and not the function alone."""
    return site.place is None or any(row["user_line"] is not None for row in site.rows)


def _cause(site: _breaks.Site, frames: list[Row]) -> str:
    """What could not be traced; where the break says no more than that, as the compile has it."""
    said = next((row["gb_type"] for row in site.rows if row["gb_type"]), None)
    said = said or site.rows[0]["reason"] or ""
    reasons = (row["fail_reason"] for row in frames if said.startswith(_SKIPS))
    return next(filter(None, reasons), said).partition("\n")[0]


def _cost(seen: tuple[Cost, Confidence], frames: list[Row]) -> tuple[Cost, Confidence]:
    """The eager code between what still compiles, if profiled; else the compile spent in vain."""
    if seen[0].ms_per_step:
        return seen
    spent = {row["compile_key"]: us for row in frames if (us := _costs.own_us(row))}
    about = "spent on tracing a function that then stays in eager; what it loses is not known"
    return Cost(seconds=sum(spent.values()) / 1e6 if spent else None, about=about), "heuristic"


def _outcomes(frames: list[Row]) -> tuple[Evidence, ...]:
    skipped = [row for row in frames if row["outcome"] == "skipped"][:1]
    return tuple(
        from_row(
            f"compile {row['compile_id']} of {readable_name(row['co_name'])} ended as "
            "skipped"
            + (f" after {seconds(row['duration_us'] / 1e6)}" if row["duration_us"] else ""),
            "compiles",
            row,
        )
        for row in skipped
    )
