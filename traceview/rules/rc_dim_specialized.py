"""
## What it finds
A size that is symbolic, or could be, and that compiled code sets to one value: a dict or table
looked up with it, `if n == 33`, a chain of ranges, a product with a tensor of fixed size.

## Why it costs
The graph is then valid for that size alone (or for one range of sizes), and the next size costs
another compile, up to the recompile limit. After that, new sizes run in eager. `dynamic=True` does
not change that.

## Evidence
A recompile whose deciding guard is on the size of a tensor, although torch had made it symbolic: a
symbolic size that was specialised in the code before or in the code after, a condition on the size
as guard, or the same dimension changing again. The line is the one where the size was set.

Or torch's own error, that a size marked with `mark_dynamic` was set to one value.

A warning where the recompiles took at least a second, and at least 5 % of the job where its length
is known, or where the function hit the recompile limit. Otherwise information. Fewer than three
such recompiles below the limit are information: a few branches make a few variants.

## What to do
Calculate with the size instead of looking it up, or decide outside the compiled function. Where the
sizes are few and known, raise the recompile limit above their number.

## Settings
- `most_variants`: recompiles up to this number are information.

## References
- https://docs.pytorch.org/docs/stable/compile/programming_model.recompilation.html
- https://docs.pytorch.org/docs/stable/torch.compiler_dynamic_shapes.html
- torch/fx/experimental/symbolic_shapes.py, `ShapeEnv._set_replacement`
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traceview.derive.facts.recompile_causes import pins
from traceview.rules import _failures, _recompiles
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Owners,
    Row,
    Spot,
    Tables,
    from_row,
    rows,
    short,
    times,
    user,
)

CODE = "TV212"
NEEDS = frozenset({"recompile_causes", "compiles"})
SEVERITIES = ("warning", "info")

#: Two special cases next to the general one.
MOST_VARIANTS = 2
#: torch/fx/experimental/symbolic_shapes.py, ``ConstraintViolationError``.
_BROKEN_MARK = re.compile(
    r"You marked (?P<size>L\[.{1,200}?\]\.size\(\)\[\d+\]) as dynamic but your code specialized it "
    r"to be a constant \((?P<value>\d+)\)"
)
#: torch's term in guards: sizes that are equal at first share one symbol.
_DUCK = "duck sizing"


def check(tables: Tables, *, most_variants: int = MOST_VARIANTS) -> Iterator[Finding]:
    """One finding a function and tensor."""
    limited = _recompiles.limited_frames(tables)
    for cause in _recompiles.of_sizes(tables, "pinned"):
        many = len(cause.rows) > most_variants or _recompiles.frame_of(cause.row) in limited
        pin = next((pin for row in cause.rows for pin in pins(tables, row) if user(pin)), None)

        spot = Owners(tables).spot(pin) if pin else _recompiles.spot(tables, cause)
        # Each variant is for one size, and one for all sizes is yet to come.
        static = cause.row["kind"] == "size"
        cost = cause.cost(tables, but_one=static and not _were_equal(cause, pin))

        # The line; where only the function is known, not more than that.
        known = spot.place is not None and spot.place.line != cause.row["co_firstlineno"]
        who = short(spot.place) if known else "its code"

        if _were_equal(cause, pin):
            remedy = (
                "Make the first call with sizes that differ from each other, or set "
                "torch.fx.experimental._config.use_duck_shape = False before it."
            )
        else:
            remedy = (
                "Calculate with the size instead of deciding on it or looking it up, or do that "
                f"before {cause.function} is called and pass the result. Where the sizes are few "
                f"and known, raise {_recompiles.recompile_limit(tables)} above their number."
            )
        yield Finding(
            code=CODE,
            rule="rc-dim-specialized",
            severity=_recompiles.severity(tables, cause, cost) if many else "info",
            title=(
                f"{_recompiles.opening(cause.function)} recompiled {times(len(cause.rows))}: "
                f"{who} specializes {cause.subject}"
            ),
            explanation=_explanation(cause, pin),
            cost=cost,
            confidence="measured",
            location=spot.place,
            inside=spot.inside,
            evidence=(*cause.evidence(), *_proof(pin)),
            what_to_do=remedy,
            about=cause.about,
        )
    for failure in _failures.failures(tables, _BROKEN_MARK):
        yield _broken_mark(tables, failure)


def _broken_mark(tables: Tables, failure: _failures.Failure) -> Finding:
    """A mark that the code does not keep is an error, whatever sizes come."""
    size, value = failure.found["size"], failure.found["value"]
    named = rows(tables, "symbols", event="specialize")
    pins = [pin for pin in named if size in (pin["source_name"] or "") and user(pin)]
    spot = Owners(tables).spot(pins[0]) if pins else Spot(failure.place)
    return Finding(
        code=CODE,
        rule="rc-dim-specialized",
        severity=failure.severity,
        title=(
            f"{short(spot.place)} specializes {_recompiles.plain(size)} to {value}, though "
            "it is marked as dynamic: compilation fails"
        ),
        explanation=(
            "`mark_dynamic` promises that the code is valid for any size, and torch found that it "
            "is valid for one size only."
        ),
        cost=Cost(about="this error ended the script: no cost was measured"),
        confidence="measured",
        location=spot.place,
        inside=spot.inside,
        evidence=(*failure.evidence, *_proof(pins[0] if pins else None)),
        what_to_do=(
            "Do not decide on that size in compiled code. Or mark it with maybe_mark_dynamic, "
            "which is only a wish: every size is then compiled separately."
        ),
        about=failure.about,
    )


def _explanation(cause: _recompiles.Cause, pin: Row | None) -> str:
    if _were_equal(cause, pin):
        return (
            "Two sizes were equal in the first call, so torch gave them one symbol; later they "
            "differed."
        )
    met = f" Sizes met: {cause.values()}." if all(row["new"] for row in cause.rows) else ""
    if pin is None:
        return f"The code is valid only for the sizes that its guards name.{met}"
    return (
        f"torch had made the size symbolic, and this line set it to {pin['value']}: the compiled "
        f"code is valid for that size only.{met}"
    )


def _were_equal(cause: _recompiles.Cause, pin: Row | None) -> bool:
    """Whether it is all because one symbol stood for two sizes."""
    if pin is not None:
        return len(cause.rows) == 1 and pin["source_name"].count(".size()[") > 1
    return all(_DUCK in (row["guard"] or "") for row in cause.rows)


def _proof(pin: Row | None) -> tuple[Evidence, ...]:
    if pin is None:
        return ()
    text = f"{pin['compile_id']}: {pin['source_name']} specialized to {pin['value']}"
    return (from_row(text, "symbols", pin),)
