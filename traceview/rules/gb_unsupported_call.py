"""
## What it finds
A call inside compiled code that Dynamo does not know how to trace: a C extension, ctypes, a
builtin of Python's, a library function that it skips, an object of a kind that it does not know.

## Why it costs
Dynamo ends the graph there, Python makes the call, and a second graph starts after it. Nothing
fuses across the cut, and every call pays for two guarded entries.

## Evidence
A graph break at the line, of a type that no other rule is about: `.item()`, decisions on values,
printing, dynamic shapes, what the script itself disables, and an optimizer's or DDP's own code
have rules of their own. The cost is what the profile shows of it: Python at the break and entering
compiled code once more. What no line shows is shared by all lines that break, by the graphs
entered behind each.

It is information, not a warning, where that is below 5 % of the compiled step and below 0.05 ms, or
below 1 %; also where compiling did not hurt, nothing more runs compiled after the break, and it is
not known to leave operators of its function in eager: these are the cost otherwise. Where
`fullgraph=True` makes an error of the break, the compile that failed is the evidence, and an error
where it ended the script; else trying it anew at each call is the cost.

## What to do
Compute once, outside, what does not depend on the tensors. Make an operator of what works on
tensors, with `torch.library.custom_op` and a fake implementation: that keeps the graph whole,
though nothing fuses into it. Read clocks outside; draw random numbers as tensors. Some calls have a
setting with which Dynamo traces them: torch's hint names it.

## References
- https://docs.pytorch.org/docs/stable/compile/programming_model.common_graph_breaks.html
- https://docs.pytorch.org/docs/stable/library.html
- https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0156.html
- torch/_dynamo/variables/functions.py, `SkipFunctionVariable.call_function`
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from traceview.rules import _break_costs, _break_kinds, _breaks, _callees, _places
from traceview.rules._rows import rows
from traceview.rules.finding import Finding, Snippet
from traceview.tables import Tables
from traceview.words.text import shorten

CODE = "TV107"
NEEDS = frozenset({"graph_breaks"})
EXPLAINS = frozenset({"graph_break", "idle_graph_break", "overheads_added"})

_CUSTOM_OP = """\
@torch.library.custom_op("mylib::my_call", mutates_args=())
def my_call(x: torch.Tensor) -> torch.Tensor:
    ...  # the call, on real tensors

@my_call.register_fake
def _(x):
    return torch.empty_like(x)  # shape, dtype and device of what it gives back"""
_CLOCK = """\
if torch.compiler.is_compiling():
    return function(*args, **kwargs)
...  # what reads the clock, in eager only"""
_ONCE = "If it does not depend on the tensors, compute it once, outside of the compiled function."


def check(tables: Tables) -> Iterator[Finding]:
    """One finding a line that Dynamo cannot trace."""
    breaks = tables.once(_break_costs.Breaks)
    for site in _breaks.resumable(tables, _break_kinds.is_rest):
        callee = _callees.callee(site)
        remedy, snippet = _switched(site) or _remedy(callee)
        yield breaks.finding(
            site,
            code=CODE,
            rule="gb-unsupported-call",
            title=(
                f"{_shown(site, callee)} at {_places.short(site.place)} "
                f"{_breaks.effect(tables, site)}"
            ),
            explanation=_why(tables, site),
            what_to_do=remedy,
            snippet=snippet,
        )


def _shown(site: _breaks.Site, callee: str | None) -> str:
    if callee:
        return f"`{callee}`"
    return f"`{shorten(site.source, 60)}`" if site.source else "Code that Dynamo cannot trace"


def _why(tables: Tables, site: _breaks.Site) -> str:
    """torch's own words for it, and its first hint that is not to write to torch.

    Where it is no call that Dynamo gives up (an LSTM as it is looked up), it resumes nowhere.
    """
    row = site.rows[0]
    resumed = not rows(tables, "compiles") or tables.once(_places.Owners).behind(*site.rows)
    then = "compiles what follows by itself" if resumed else "nothing behind it was compiled"
    hints = (h for h in row["hints"] or () if "issue" not in h and not h.startswith("If "))
    hint = shorten(next(hints, None), 200).rstrip(".")
    return (
        f"Dynamo cannot trace it ({shorten(row['gb_type'])}), so it ends the graph, lets Python "
        f"run it, and {then}." + (f" torch's hint: {hint}." if hint else "")
    )


def _switched(site: _breaks.Site) -> tuple[str, Snippet] | None:
    """A setting of torch's that lets Dynamo trace it: an LSTM, a class made in the function."""
    name = _callees.switch(site)
    if name is None:
        return None
    setting = f"torch._dynamo.config.{name} = True"
    return (
        f"Let Dynamo trace it with {setting}, which may compile for long; or call it in a method "
        "of its own under @torch.compiler.disable: the graph still ends there, but what follows "
        "is compiled too.",
        Snippet("python", setting),
    )


def _remedy(callee: str | None) -> tuple[str, Snippet | None]:
    """Python's own library knows no tensors; a call into another package may become an operator."""
    if _callees.is_clock(callee):
        return (
            "Read clocks outside of the compiled call (a profiler tells its parts), or leave them "
            "out of compiled code with is_compiling(): compiled parts have no times of their own.",
            Snippet("python", _CLOCK),
        )
    if _callees.is_random(callee):
        return _callees.DRAW, None
    if callee is None or callee.partition(".")[0].lstrip("_") in sys.stdlib_module_names:
        return f"{_ONCE} If it is only needed there, call it before or after.", None
    return (
        f"{_ONCE} If it works on tensors, make it a custom operator with a fake implementation: "
        "then the graph goes on around it.",
        Snippet("python", _CUSTOM_OP),
    )
