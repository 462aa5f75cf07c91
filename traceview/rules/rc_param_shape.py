"""
## What it finds
A compiled function that is called with parameters of many shapes: an optimizer's update, or the
orthogonalisation of Muon, compiled once and called for each parameter.

## Why it costs
Elsewhere torch makes a size that changes symbolic; sizes of parameters it never does. Each further
shape is a whole compile, until the recompile limit; from then on new shapes run in eager.

## Evidence
At least two recompiles of one function for a size, where its variants guard one parameter with
different sizes, or torch itself says that the tensor is a parameter.

A warning where compiling it again took a second or more, and 5 % of a job whose length is known, or
where the function met the recompile limit; else information. Two recompiles short of the limit are
information. So are more where the parameters are those of modules that share their code and are
compiled one by one: each has its own shape for good.

## What to do
Hand in `parameter.data`, a plain tensor: then torch makes its sizes symbolic. Or set
`torch._dynamo.config.force_parameter_static_shapes = False`, which holds for every compile of the
process. For a few shapes, a compile for each is what fits them best: raise the recompile limit.

## Settings
- `most_shapes`: recompiles up to this number are information (2: three shapes).

## References
- https://docs.pytorch.org/docs/stable/compile/programming_model.recompilation.html
- torch/_dynamo/config.py, `force_parameter_static_shapes`
- torch/_dynamo/utils.py, `tensor_always_has_static_shape`
- https://github.com/microsoft/dion/issues/23
- https://github.com/pytorch/pytorch/issues/121369
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules import _recompile_kinds, _recompile_places, _recompiles, _sizes, _versions
from traceview.rules._rows import Row
from traceview.rules.finding import Finding, Snippet
from traceview.tables import Tables
from traceview.words.numbers import times

CODE = "TV210"
NEEDS = frozenset({"recompiles", "compiles"})

#: One change costs one compile; two show that the size does not become symbolic.
FEWEST_RECOMPILES = 2
MOST_SHAPES = 2
SWITCH = "force_parameter_static_shapes"


def check(tables: Tables, *, most_shapes: int = MOST_SHAPES) -> Iterator[Finding]:
    """One finding a function: whichever tensors torch names, they change with the parameter."""
    limited = _recompiles.limited_frames(tables)
    by_frame: dict[_recompiles.Frame, list[Row]] = {}
    for cause in _sizes.of_reason(tables, "parameter"):
        by_frame.setdefault(_recompiles.frame_of(cause.row), []).extend(cause.rows)
    sizes = tables.once(_sizes.Sizes)
    for frame, found in by_frame.items():
        cause = _recompiles.Cause(tuple(found))
        own = sizes.of_instances(cause)
        if len(found) >= FEWEST_RECOMPILES:
            many = frame in limited or (len(found) > most_shapes and not own)
            yield _finding(tables, cause, own, many)


def _finding(tables: Tables, cause: _recompiles.Cause, own: bool, many: bool) -> Finding:
    spot = _recompiles.spot(tables, cause)
    called = "is that of modules" if own else "is called with parameters"
    cost = cause.cost(tables, but_one=not own)
    return Finding(
        code=CODE,
        rule="rc-param-shape",
        severity=_recompile_kinds.severity(tables, cause, cost) if many else "info",
        title=(
            f"{cause.function} {called} of many shapes and was compiled again for each "
            f"({times(len(cause.rows))})"
        ),
        explanation=(
            "torch never makes the sizes of a parameter symbolic, nor those of what is calculated "
            f"with it (here {cause.source}): every new shape costs a compile of its own."
        ),
        cost=cost,
        confidence="derived" if own else "measured",
        location=spot.place,
        inside=spot.inside,
        evidence=cause.evidence(),
        what_to_do=_remedy(tables, cause, own),
        snippet=Snippet("python", f"torch._dynamo.config.{SWITCH} = False"),
        also_at=tuple(_recompile_places.callers(tables, cause)),
        about=cause.about,
    )


def _remedy(tables: Tables, cause: _recompiles.Cause, own: bool) -> str:
    best = "a compile for each is what fits them best"
    raised = f"raise {_versions.recompile_limit(tables)} above their number"
    switched = "the switch holds for the whole process, so other models' code may get slower"
    if own:
        return (
            f"Nothing, while the shapes are few: {best}. Where the limit is reached, {raised}; or "
            f"let sizes of parameters be symbolic ({switched})."
        )
    return (
        f"Hand in plain tensors (`parameter.data`) where {cause.function} is called, or let sizes "
        f"of parameters be symbolic: {switched}. For a few shapes that come back, {best}: then "
        f"{raised}."
    )
