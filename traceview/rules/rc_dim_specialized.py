"""
## What it finds
A size that is symbolic, or could be, and that compiled code sets to one value: a dict or table
looked up with it, `if n == 33`, a chain of ranges, a product with a tensor of fixed size.

## Why it costs
The graph then holds for that size alone (or for one range of them), and the next size is a compile
of its own, until the recompile limit; from then on new sizes run in eager. `dynamic=True` changes
nothing about it.

## Evidence
A recompile whose deciding guard is on the size of a tensor, although torch had made it symbolic:
a symbolic size that was specialised in the code before or in the code after, a condition on the
size as guard, or the same dimension changing again. The line is the one where the size was set.

Or torch's own error, that a size marked with `mark_dynamic` was set to one value.

A warning where compiling it again took a second or more, and 5 % of a job whose length is known, or
where the function met the recompile limit; else information. Fewer than three such recompiles short
of the limit are information: a handful of branches is a handful of variants.

## What to do
Calculate with the size instead of looking it up, or decide outside of the compiled function. Where
the sizes are few and known, raise the recompile limit above their number.

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

from traceview.rules import _failures, _places, _recompile_kinds, _recompiles, _sizes, _versions
from traceview.rules._evidence import from_row
from traceview.rules._rows import Row, rows
from traceview.rules.finding import Cost, Evidence, Finding, Location
from traceview.tables import Tables
from traceview.words.numbers import times

CODE = "TV212"
NEEDS = frozenset({"recompiles", "compiles"})

#: Two special cases beside the general one.
MOST_VARIANTS = 2
#: torch/fx/experimental/symbolic_shapes.py, ``ConstraintViolationError``.
_BROKEN_MARK = re.compile(
    r"You marked (?P<size>L\[.{1,200}?\]\.size\(\)\[\d+\]) as dynamic but your code specialized it "
    r"to be a constant \((?P<value>\d+)\)"
)
#: torch's word for it in guards: what looks the same is the same.
_DUCK = "duck sizing"


def check(tables: Tables, *, most_variants: int = MOST_VARIANTS) -> Iterator[Finding]:
    """One finding a function and tensor."""
    limited = _recompiles.limited_frames(tables)
    sizes = tables.once(_sizes.Sizes)
    for cause in _sizes.of_reason(tables, "pinned"):
        many = len(cause.rows) > most_variants or _recompiles.frame_of(cause.row) in limited
        pin = next(
            (pin for row in cause.rows for pin in sizes.pins(row) if _places.user(pin)), None
        )
        yield _finding(tables, cause, pin, many)
    for failure in _failures.failures(tables, _BROKEN_MARK):
        yield _broken_mark(tables, failure)


def _finding(tables: Tables, cause: _recompiles.Cause, pin: Row | None, many: bool) -> Finding:
    spot = _places.Owners(tables).spot(pin) if pin else _recompiles.spot(tables, cause)
    cost = cause.cost(tables, but_one=_static(cause) and not _were_equal(cause, pin))
    return Finding(
        code=CODE,
        rule="rc-dim-specialized",
        severity=_recompile_kinds.severity(tables, cause, cost) if many else "info",
        title=(
            f"{_who(cause, spot.place)} decides on {cause.subject}: "
            f"{cause.function} was compiled again {times(len(cause.rows))}"
        ),
        explanation=_explanation(cause, pin),
        cost=cost,
        confidence="measured",
        location=spot.place,
        inside=spot.inside,
        evidence=(*cause.evidence(), *_proof(pin)),
        what_to_do=_remedy(tables, cause, pin),
        about=cause.about,
    )


def _broken_mark(tables: Tables, failure: _failures.Failure) -> Finding:
    """A mark that the code does not keep is an error, whatever sizes come."""
    size, value = failure.found["size"], failure.found["value"]
    named = rows(tables, "symbols", event="specialize")
    pins = [pin for pin in named if size in (pin["source_name"] or "") and _places.user(pin)]
    spot = _places.Owners(tables).spot(pins[0]) if pins else _places.Spot(failure.place)
    return Finding(
        code=CODE,
        rule="rc-dim-specialized",
        severity=failure.severity,
        title=(
            f"{_places.short(spot.place)} sets {_recompiles.plain(size)}, which was marked as "
            f"dynamic, to {value}: it does not compile"
        ),
        explanation=(
            "`mark_dynamic` promises that the code holds for any size, and torch found that it "
            "holds for one alone."
        ),
        cost=Cost(about="what ended the script has no cost of its own"),
        confidence="measured",
        location=spot.place,
        inside=spot.inside,
        evidence=(*failure.evidence, *_proof(pins[0] if pins else None)),
        what_to_do=(
            "Do not decide on that size inside; or mark it with maybe_mark_dynamic, which is only "
            "a wish: then every size is a compile of its own."
        ),
        about=failure.about,
    )


def _who(cause: _recompiles.Cause, place: Location | None) -> str:
    """The line; where only the function is known, not more than that."""
    known = place is not None and place.line != cause.row["co_firstlineno"]
    return _places.short(place) if known else f"Something in {cause.function}"


def _explanation(cause: _recompiles.Cause, pin: Row | None) -> str:
    if _were_equal(cause, pin):
        return (
            "Two sizes were equal in the first call, so torch took them for one and the same; "
            "later they differed."
        )
    met = f" Sizes met: {cause.values()}." if all(row["new"] for row in cause.rows) else ""
    if pin is None:
        return f"The code holds only for the sizes that its guards name, not for any.{met}"
    return (
        f"torch had made the size symbolic, and this line set it to {pin['value']}: what was "
        f"compiled holds for that size alone.{met}"
    )


def _remedy(tables: Tables, cause: _recompiles.Cause, pin: Row | None) -> str:
    if _were_equal(cause, pin):
        return (
            "Make the first call with sizes that differ from each other, or set "
            "torch.fx.experimental._config.use_duck_shape = False before it."
        )
    return (
        "Calculate with the size instead of deciding on it or looking it up, or do so before "
        f"{cause.function} is called and hand in the result. Where the sizes are few and "
        f"known, raise {_versions.recompile_limit(tables)} above their number."
    )


def _static(cause: _recompiles.Cause) -> bool:
    """Whether each variant is for one size, so that one for all sizes is yet to come."""
    return str(cause.row["kind"]) == "size"


def _were_equal(cause: _recompiles.Cause, pin: Row | None) -> bool:
    """Whether it is all because one symbol stood for two sizes."""
    if pin is not None:
        return len(cause.rows) == 1 and pin["source_name"].count(".size()[") > 1
    return all(_DUCK in (row["guard"] or "") for row in cause.rows)


def _proof(pin: Row | None) -> tuple[Evidence, ...]:
    if pin is None:
        return ()
    text = f"{pin['compile_id']}: {pin['source_name']} specialised to {pin['value']}"
    return (from_row(text, "symbols", pin),)
