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
    """One finding a function and tensor; and one for each mark that the code breaks."""
    limited = _recompiles.limited_frames(tables)
    for cause in _recompiles.of_sizes(tables, "pinned"):
        pin = next((pin for row in cause.rows for pin in pins(tables, row) if user(pin)), None)
        at = Owners(tables).spot(pin) if pin else _recompiles.spot(tables, cause)
        # The line; where only the function is known, not more than that.
        known = at.place is not None and at.place.line != cause.row["co_firstlineno"]

        # Whether it is all because one symbol stood for two sizes.
        were_equal = all(_DUCK in (row["guard"] or "") for row in cause.rows)
        if pin is not None:
            were_equal = len(cause.rows) == 1 and pin["source_name"].count(".size()[") > 1
        if were_equal:
            explanation = (
                "Two sizes were equal in the first call, so torch gave them one symbol; later they "
                "differed."
            )
            remedy = (
                "Make the first call with sizes that differ from each other, or set "
                "torch.fx.experimental._config.use_duck_shape = False before it."
            )
        else:
            explanation = "The code is valid only for the sizes that its guards name."
            if pin is not None:
                explanation = (
                    f"torch had made the size symbolic, and this line set it to {pin['value']}: "
                    "the compiled code is valid for that size only."
                )
            if all(row["new"] for row in cause.rows):
                explanation += f" Sizes met: {cause.values()}."
            remedy = (
                "Calculate with the size instead of deciding on it or looking it up, or do that "
                f"before {cause.function} is called and pass the result. Where the sizes are few "
                f"and known, raise {_recompiles.recompile_limit(tables)} above their number."
            )
        # Each variant is for one size, and one for all sizes is yet to come.
        static = cause.row["kind"] == "size"
        few = len(cause.rows) <= most_variants
        yield _recompiles.finding(
            tables,
            cause,
            code=CODE,
            rule="rc-dim-specialized",
            title=f"{short(at.place) if known else 'its code'} specializes {cause.subject}",
            explanation=explanation,
            at=at,
            cost=cause.cost(tables, but_one=static and not were_equal),
            often=times(len(cause.rows)),
            info=few and _recompiles.frame_of(cause.row) not in limited,
            evidence=(*cause.evidence(), *_proof(pin)),
            what_to_do=remedy,
        )
    yield from _broken_marks(tables)


def _broken_marks(tables: Tables) -> Iterator[Finding]:
    """A mark that the code does not keep is an error, whatever sizes come."""
    for failure in _failures.failures(tables, _BROKEN_MARK):
        size, value = failure.found["size"], failure.found["value"]
        named = rows(tables, "symbols", event="specialize")
        found = (pin for pin in named if size in (pin["source_name"] or "") and user(pin))
        pin = next(found, None)
        at = Owners(tables).spot(pin) if pin else Spot(failure.place)
        yield Finding(
            code=CODE,
            rule="rc-dim-specialized",
            severity=failure.severity,
            title=(
                f"{short(at.place)} specializes {_recompiles.plain(size)} to {value}, though "
                "it is marked as dynamic: compilation fails"
            ),
            explanation=(
                "`mark_dynamic` promises that the code is valid for any size, and torch found that "
                "it is valid for one size only."
            ),
            cost=Cost(about="this error ended the script: no cost was measured"),
            confidence="measured",
            location=at.place,
            inside=at.inside,
            about=failure.about,
            evidence=(*failure.evidence, *_proof(pin)),
            what_to_do=(
                "Do not decide on that size in compiled code. Or mark it with maybe_mark_dynamic, "
                "which is only a wish: every size is then compiled separately."
            ),
        )


def _proof(pin: Row | None) -> tuple[Evidence, ...]:
    if pin is None:
        return ()
    text = f"{pin['compile_id']}: {pin['source_name']} specialized to {pin['value']}"
    return (from_row(text, "symbols", pin),)
