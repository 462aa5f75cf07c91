"""
## What it finds
A tensor whose size varies, compiled with `dynamic=False` (or with automatic dynamic shapes off).

## Why it costs
Every new size is a compile of its own, seconds each time, until the recompile limit; from then on
new sizes run in eager.

## Evidence
At least two recompiles of one function because of the size of the same tensor, and
`dynamic=False` in a torch.compile call or `automatic_dynamic_shapes = False` in the
configuration.

## What to do
Leave `dynamic=` out: after the first change torch compiles one graph for all sizes. Where static
code is worth it, pad to a few sizes instead.

## References
- https://docs.pytorch.org/docs/stable/compile/programming_model.recompilation.html
- https://docs.pytorch.org/docs/stable/torch.compiler_dynamic_shapes.html
- torch/_dynamo/config.py, `automatic_dynamic_shapes`
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules import _places, _recompiles
from traceview.rules._rows import Row, first_rank, rows
from traceview.rules.finding import Evidence, Finding, Location, Snippet
from traceview.tables import Tables

CODE = "TV201"
NEEDS = frozenset({"recompiles", "regions"})

#: One recompile for a second size is what dynamic=False asks for; a second one is a pattern.
FEWEST_RECOMPILES = 2
_SWITCH = "automatic_dynamic_shapes"


def check(tables: Tables) -> Iterator[Finding]:
    """One finding a function and tensor."""
    regions = first_rank(rows(tables, "regions"))
    switch = next(
        (r for r in rows(tables, "environment") if r["name"] == _SWITCH and r["value"] == "False"),
        None,
    )
    for cause in _recompiles.causes(tables):
        region = _static_region(regions, cause)
        if region is None and switch is None:
            continue
        if cause.row["kind"] == "size" and len(cause.rows) >= FEWEST_RECOMPILES:
            yield _finding(tables, cause, region)


def _static_region(regions: list[Row], cause: _recompiles.Cause) -> Row | None:
    """The dynamic=False region of the function that recompiled; the first one if it is in none."""
    frame = _recompiles.frame_of(cause.row)
    own = [row for row in regions if (row["target_file"], row["target_line"]) == frame]
    return next((row for row in own or regions if row["dynamic"] == "False"), None)


def _finding(tables: Tables, cause: _recompiles.Cause, region: Row | None) -> Finding:
    setting = "dynamic=False" if region else f"torch._dynamo.config.{_SWITCH} = False"
    place: Location | None = _places.compile_call(region) if region else None
    proof = Evidence(
        f"torch.compile({region['name']}, dynamic=False) at {_places.short(place)}"
        if region
        else setting,
        "regions" if region else "environment",
    )
    return Finding(
        code=CODE,
        rule="rc-dynamic-false",
        severity="warning",
        title=(
            f"{setting}: {cause.function} is compiled anew whenever {cause.subject} changes "
            f"({len(cause.rows)} recompiles)"
        ),
        explanation=(
            f"The size of {cause.subject} varies ({cause.values()}), and {setting} forbids a graph "
            "for all sizes, so each new one costs a whole compile."
        ),
        cost=cause.cost(tables),
        confidence="measured",
        location=place or cause.place(),
        evidence=(proof, *cause.evidence()),
        what_to_do=(
            "Leave dynamic= out, so that torch makes the size symbolic after its first change; "
            f"or pad {cause.source} to a few sizes and keep it static."
        ),
        snippet=_snippet(cause, region),
    )


def _snippet(cause: _recompiles.Cause, region: Row | None) -> Snippet | None:
    if region is None:
        return Snippet("python", f"torch._dynamo.config.{_SWITCH} = True")
    marks = cause.marks()
    note = "# before the first call, and without dynamic=False"
    return Snippet("python", f"{note}\n{marks}") if marks else None
