"""
## What it finds
A tensor whose size varies, compiled with `dynamic=False` (or with automatic dynamic shapes off).

## Why it costs
Every new size costs a compile of its own, seconds each time, up to the recompile limit. After that,
new sizes run in eager.

## Evidence
At least two recompiles of one function because of the size of the same tensor, and `dynamic=False`
in a torch.compile call or `automatic_dynamic_shapes = False` in the configuration.

A warning where the recompiles took at least a second, and at least 5 % of the job where its length
is known, or where the function hit the recompile limit. Otherwise information. Where compiling
helped and all sizes are powers of two or multiples of 16, below the limit, it is information: that
is what padding to a few sizes looks like.

## What to do
Leave `dynamic=` out: after the first change torch compiles one graph for all sizes. Where static
code is worth it, pad to a few sizes instead.

## Settings
- `most_padded`: from this many recompiles on, sizes do not count as padded.

## References
- https://docs.pytorch.org/docs/stable/compile/programming_model.recompilation.html
- https://docs.pytorch.org/docs/stable/torch.compiler_dynamic_shapes.html
- torch/_dynamo/config.py, `automatic_dynamic_shapes`
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from traceview.derive.facts.recompile_causes import DYNAMIC_SWITCH
from traceview.rules import _recompiles
from traceview.rules._recompiles import Cause
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Row,
    Spot,
    Tables,
    compile_call,
    outcome,
    region_of,
    short,
    times,
)

CODE = "TV201"
NEEDS = frozenset({"recompile_causes", "regions", "compiles", "compile_regions"})
SEVERITIES = ("warning", "info")
#: A service that keeps a few sizes apart on purpose has only to compile them before it opens.
FOLLOWS = frozenset({"sv-cold-requests"})

#: One recompile for a second size is what dynamic=False asks for; a second one is a pattern.
FEWEST_RECOMPILES = 2
MOST_PADDED = 8
#: Whoever pads, pads to powers of two or multiples of this.
_PADDING = 16


def check(tables: Tables, *, most_padded: int = MOST_PADDED) -> Iterator[Finding]:
    """One finding a torch.compile call; where it is torch's switch, one a function and tensor."""
    limited = _recompiles.limited_frames(tables)
    for causes, region in _by_call(tables):
        cause, *others = causes
        meant = outcome(tables) == "helped" and all(
            len(each.rows) < most_padded
            and _recompiles.frame_of(each.row) not in limited
            and _padded(each)
            for each in causes
        )
        # Without the setting each function takes one graph more, for all sizes.
        costs = [each.cost(tables, but_one=True) for each in causes]
        known = [cost.seconds for cost in costs if cost.seconds is not None]
        cost = Cost(
            seconds=sum(known) if known else None,
            about="; ".join(dict.fromkeys(cost.about for cost in costs)),
        )

        setting = f"torch._dynamo.config.{DYNAMIC_SWITCH} = False"
        at, proof = _recompiles.spot(tables, cause), Evidence(setting, "environment")
        paste = f"torch._dynamo.config.{DYNAMIC_SWITCH} = True"
        switched = ("dynamic=None",) if region else (paste.replace(" ", ""),)
        if region:
            setting, call = "dynamic=False", compile_call(region)
            at = Spot(call or at.place)
            called = f"torch.compile({region['name']}, dynamic=False) at {short(call)}"
            proof = Evidence(called, "regions")
            marks = cause.marks() or cause.sources(tables)
            paste = marks and f"# before the first call, and without dynamic=False\n{marks}"
        found = _recompiles.finding(
            tables,
            Cause(tuple(row for each in causes for row in each.rows)),
            code=CODE,
            rule="rc-dynamic-false",
            title=cause.changes(),
            explanation=(
                f"{setting} rules out one graph for all sizes, so every new size costs a whole "
                "compile."
                + "".join(
                    f" {_recompiles.opening(other.function)} recompiles with it "
                    f"({times(len(other.rows))})."
                    for other in others
                )
            ),
            at=at,
            cost=cost,
            often=f"{times(len(cause.rows))} with {setting}",
            info=meant,
            evidence=(proof, *cause.evidence()),
            what_to_do=(
                "Leave dynamic= out, so that torch makes the size symbolic after its first change; "
                f"or pad {cause.source} to a few sizes and keep it static."
            ),
            paste=paste,
            remedy=switched,
        )
        yield replace(found, weighs=meant)


def _by_call(tables: Tables) -> Iterator[tuple[list[Cause], Row | None]]:
    """What one edit fixes, the most recompiles first, including code after a graph break.

    Causes of several recompiles, with the region that forbids dynamic shapes. Around a callable of
    another library's torch compiles a function of its own as well, which recompiles with the user's
    and is not reported again.
    """
    found: list[tuple[Cause, Row | None]] = []
    for cause in _recompiles.of_sizes(tables, "static"):
        if len(cause.rows) >= FEWEST_RECOMPILES:
            called = region_of(tables, cause.row["compile_key"])
            static = called is not None and called["dynamic"] == "False"
            found.append((cause, called if static else None))
    reported = [region for cause, region in found if not cause.row["is_wrapper"]]
    calls: dict[object, tuple[list[Cause], Row | None]] = {}
    for cause, region in found:
        if not (cause.row["is_wrapper"] and region is not None and region in reported):
            key = region["region_id"] if region else id(cause)
            calls.setdefault(key, ([], region))[0].append(cause)
    for causes, region in calls.values():
        yield sorted(causes, key=lambda cause: -len(cause.rows)), region


def _padded(cause: Cause) -> bool:
    """Whether all sizes look chosen by hand."""
    met = [row[column] for row in cause.rows for column in ("old", "new")]
    sizes = [int(size) for size in met if size is not None and size.isdecimal()]
    return bool(sizes) and all(n % _PADDING == 0 or n & (n - 1) == 0 for n in sizes)
