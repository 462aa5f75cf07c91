"""
## What it finds
A graph break inside a `for`, `while`, `try` or `with` that makes Dynamo leave the whole function
in eager.

## Why it costs
Dynamo cannot resume in the middle of such a block. It gives the frame up: nothing in it is
compiled, only the functions that it calls are, each separately. A loop over layers then runs as
eager code, in most cases the whole model.

## Evidence
A graph break that the log marks as skipping the frame, and the outcome `skipped` of that compile.
The cost is the host time between the pieces that still compile, in the profiler window; on a GPU
what the device idles meanwhile, and the function's operators that no compiled graph holds.

A break that a remedy of its own removes, in a loop as well, is reported by the rule with that
remedy: `.item()`, print and the like, an operator without a fake implementation, and one of a size
that depends on values.

## What to do
Move the line that breaks out of the loop or the block: decide before it, after it, or in the
caller. If only the loop's body is worth compiling, make it a function and compile that.

## References
- https://docs.pytorch.org/docs/stable/compile/programming_model.skipped_functions.html
- https://meta-pytorch.github.io/compile-graph-break-site/gb/gb7000.html
- torch/_dynamo/symbolic_convert.py, `break_graph_if_unsupported`
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules import _breaks
from traceview.rules.kit import (
    Finding,
    Owners,
    Tables,
    severity,
    short,
    shorten,
)
from traceview.words import names

CODE = "TV104"
NEEDS = frozenset({"break_sites", "compiles"})
SEVERITIES = ("warning", "info")
EXPLAINS = frozenset({"graph_break", "idle_graph_break", "overheads_added"})

_SKIPS = "torch.compile will skip tracing the frame"
_OUTERMOST = (
    "Compile the outermost function, the one that calls torch.func.grad, vmap or the like, instead "
    "of the one that they call."
)
_PLAIN = (
    "Use the original Python module, without torch.jit.script, trace or freeze: its state_dict() "
    "has the same names."
)
_BOTH = "Compute both sides and choose with torch.where, where the line only chooses a value."
_MOVE = (
    "Move this line out of the loop or block: decide before it, after it, or in the caller. If "
    "only the loop's body is worth compiling, make it a function and compile that one."
)


def check(tables: Tables) -> Iterator[Finding]:
    """One finding per line whose break made Dynamo give the frame up."""
    owners = tables.once(Owners)
    for site in _breaks.sites(tables):
        gave_up = (row for row in site.rows if row["frame_skipped"])
        if all(not _breaks.REMOVABLE.isdisjoint(row["kinds"]) for row in gave_up):
            continue
        frames = _breaks.given_up(tables, site)
        own = (row["co_name"] for row in frames if row["co_name"] and not owners.code(row).inside)
        name = next(own, None)  # not torch's wrapper around it
        function = names.function(name) if name else "the function"

        # What could not be traced; where the break says no more than that, as the compile has it.
        said = next((row["gb_type"] for row in site.rows if row["gb_type"]), None)
        said = said or site.rows[0]["reason"] or ""
        reasons = (row["fail_reason"] for row in frames if said.startswith(_SKIPS))
        why = next(filter(None, reasons), said).partition("\n")[0]
        if site.place is None or any(row["names_line"] for row in site.rows):
            headline = f"a graph break at {short(site.place)} cannot resume ({shorten(why, 60)})"
            cause = (
                f"Dynamo cannot resume after this break ({shorten(why)}), as in a loop, try or "
                "with block, so it"
            )
        else:
            headline = f"Dynamo gives it up ({shorten(why, 80)})"
            cause = f"Dynamo cannot start with it ({shorten(why)}), so it"
        remedy = _breaks.DRAW if site.draws else _MOVE
        if any("data_dependent" in row["kinds"] for row in site.rows):
            remedy = f"{_BOTH} {_MOVE}"
        remedy = _OUTERMOST if "functorch" in why else _PLAIN if "torch.jit" in why else remedy
        what_to_do, _ = _breaks.at_call(site, remedy, None)

        # The eager code between what still compiles, if profiled; else the failed compile.
        cost, confidence = _breaks.seen(tables, site)
        yield Finding(
            code=CODE,
            rule="gb-frame-skipped",
            severity=severity(tables, cost.ms_per_step),
            title=f"{function if name else 'The function'} runs in eager: {headline}",
            explanation=(
                f"{cause} leaves all of {function} in eager and compiles at most the functions "
                "that it calls."
            ),
            cost=cost,
            confidence=confidence,
            location=site.place,
            inside=site.inside,
            about=site.about,
            evidence=(*site.evidence(), *_breaks.skipped_compile(tables, site)),
            what_to_do=what_to_do,
        )
