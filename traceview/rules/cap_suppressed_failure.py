"""
## What it finds
A function that failed to compile and runs in eager because errors are suppressed.

## Why it costs
The script goes on without an error. That function, and everything that could have fused with it,
runs in eager, after the time of the failed compile was spent.

## Evidence
torch's warning `WON'T CONVERT`, or a compile whose metrics name a failure while
`torch._dynamo.config.suppress_errors` (TORCHDYNAMO_SUPPRESS_ERRORS) is on.

## What to do
Turn suppression off to see the error. Fix it, or keep that one function out of the graph with
`torch.compiler.disable`, so that the rest stays compiled and failures stay visible.

## References
- https://docs.pytorch.org/docs/stable/torch.compiler_troubleshooting.html
- torch/_dynamo/config.py, `suppress_errors`
- torch/_dynamo/convert_frame.py, `ConvertFrame.__call__`
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traceview.derive.facts.breaks import errors_suppressed
from traceview.rules._failures import failed_compile
from traceview.rules.kit import (
    Cost,
    Finding,
    Location,
    Owners,
    Snippet,
    Spot,
    Tables,
    about,
    compile_seconds,
    from_row,
    rows,
    shorten,
)

CODE = "TV112"
NEEDS = frozenset({"compiles", "environment|warnings"})
SEVERITIES = ("warning",)
FOLLOWS = frozenset({"cap-customop-no-fake"})

#: torch/_dynamo/utils.py, ``get_fake_value``.
_QUOTED = re.compile(r"got \w+\(['\"](.+?)['\"]\)(?=\s|$)")
_NO_FAKE = re.compile(r"no fake impl registered for <CustomOpDef\(\w+::(\w+)\)>")
_FAKE = """\
@{name}.register_fake
def _(x):  # the same parameters as {name}
    return torch.empty_like(x)  # shape, dtype and device of what it returns"""
_REGISTER = (
    "Register a fake implementation of {name}, so that torch can trace past it, and turn "
    "suppression off."
)
_SHOW = (
    "Turn suppression off to see the error. Then fix it, or keep this one function out of the "
    "graph with @torch.compiler.disable."
)
_TURN_OFF = "torch._dynamo.config.suppress_errors = False"

Key = tuple[str | None, int | None]


def check(tables: Tables) -> Iterator[Finding]:
    """One finding per function that was given up."""
    # They failed while the script went on.
    failed = rows(tables, "compiles", outcome="failed") if errors_suppressed(tables) else []
    warned = rows(tables, "warnings", kind="suppressed_failure")
    owners, spots = tables.once(Owners), dict[Key, Spot]()
    for row in warned:
        at = Location(row["file"], row["line"], row["function"]) if row["file"] else None
        spots.setdefault((row["file"], row["line"]), Spot(at))
    for row in failed:
        spots.setdefault((row["co_filename"], row["co_firstlineno"]), owners.code(row))
    for key, spot in spots.items():
        compiles = [row for row in failed if (row["co_filename"], row["co_firstlineno"]) == key]
        messages = [row for row in warned if (row["file"], row["line"]) == key]
        function = spot.inside or spot.place
        name = f"{function.function}()" if function and function.function else "A function"
        kinds = [row["fail_type"] for row in compiles]
        kinds += [row["category"] for row in messages if row["category"] != "W"]
        kind = f" ({reason})" if (reason := next(filter(None, kinds), None)) else ""

        # The error that an operator raised while it was traced, as torch's message quotes it.
        texts = (*(row["fail_reason"] for row in compiles), *(row["message"] for row in messages))
        found = next(filter(None, (_QUOTED.search(text or "") for text in texts)), None)
        cause = found[1] if found else None
        op = _NO_FAKE.search(cause or "")
        yield Finding(
            code=CODE,
            rule="cap-suppressed-failure",
            severity="warning",
            title=f"{name} failed to compile{kind} and runs in eager, silently",
            explanation=(
                "suppress_errors turns a failed compile into a warning in the log. From then on "
                "the function runs in eager, and nothing fuses with it."
                + (f" The error: {shorten(cause, 300)}" if cause else "")
            ),
            cost=Cost(
                seconds=compile_seconds(compiles),
                about="spent on the compile that failed; what it would have saved is not known",
            ),
            confidence="heuristic",
            location=spot.place,
            inside=spot.inside,
            about=about(*compiles),
            evidence=(
                *(from_row(shorten(row["message"]), "warnings", row) for row in messages[:1]),
                *(
                    failed_compile(row, shorten(row["fail_reason"] or row["fail_type"]))
                    for row in compiles[:2]
                ),
            ),
            what_to_do=_REGISTER.format(name=op[1]) if op else _SHOW,
            snippet=Snippet("python", _FAKE.format(name=op[1]) if op else _TURN_OFF),
        )
