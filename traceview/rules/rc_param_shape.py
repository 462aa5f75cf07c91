"""
## What it finds
A compiled function that is called with parameters of many shapes: an optimizer's update, or Muon's
orthogonalization, compiled once and called for each parameter.

## Why it costs
torch makes other sizes symbolic when they change, but never those of parameters. Every further
shape costs a whole compile, up to the recompile limit. After that, new shapes run in eager.

## Evidence
At least two recompiles of one function for a size, where its variants guard one parameter with
different sizes, or torch itself says that the tensor is a parameter.

A warning where the recompiles took at least a second, and at least 5 % of the job where its length
is known, or where the function hit the recompile limit. Otherwise information. Two recompiles below
the limit are information. So are more where the parameters belong to modules that share their code
and are compiled separately: each keeps its own shape.

## What to do
Pass `parameter.data`, a plain tensor: then torch makes its sizes symbolic. Or set
`torch._dynamo.config.force_parameter_static_shapes = False`, which holds for every compile of the
process. For a few shapes, one compile for each is best: raise the recompile limit.

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

from traceview.rules import _recompiles
from traceview.rules.kit import Finding, Row, Tables, times

CODE = "TV210"
NEEDS = frozenset({"recompile_causes", "compiles"})
SEVERITIES = ("warning", "info")

#: One change costs one compile; two show that the size does not become symbolic.
FEWEST_RECOMPILES = 2
MOST_SHAPES = 2
SWITCH = "force_parameter_static_shapes"


def check(tables: Tables, *, most_shapes: int = MOST_SHAPES) -> Iterator[Finding]:
    """One finding a function: whichever tensors torch names, they change with the parameter."""
    limited = _recompiles.limited_frames(tables)
    by_frame: dict[_recompiles.Frame, list[Row]] = {}
    for cause in _recompiles.of_sizes(tables, "parameter"):
        by_frame.setdefault(_recompiles.frame_of(cause.row), []).extend(cause.rows)
    for frame, found in by_frame.items():
        if len(found) < FEWEST_RECOMPILES:
            continue
        cause = _recompiles.Cause(tuple(found))
        names = [name for row in found for name in row["parameters"]]
        own = all("_parameters[" in name for name in names)  # the modules' own

        best = "one compile for each is best"
        raised = f"raise {_recompiles.recompile_limit(tables)} above their number"
        switched = "the setting holds for the whole process, so other models may get slower"
        if own:
            remedy = (
                f"Nothing, while the shapes are few: {best}. If the limit is reached, "
                f"{raised}; or make the sizes of parameters symbolic ({switched})."
            )
        else:
            remedy = (
                f"Pass plain tensors (`parameter.data`) where {cause.function} is called, or "
                f"make the sizes of parameters symbolic: {switched}. For a few shapes that "
                f"come back, {best}: then {raised}."
            )
        yield _recompiles.finding(
            tables,
            cause,
            code=CODE,
            rule="rc-param-shape",
            title="its modules' parameters differ in shape"
            if own
            else "its parameters differ in shape",
            explanation=(
                "torch never makes the sizes of a parameter symbolic, nor those of what is "
                f"calculated from it (here {cause.source}): every new shape costs a compile "
                "of its own."
            ),
            cost=cause.cost(tables, but_one=not own),
            often=times(len(found)),
            info=frame not in limited and (own or len(found) <= most_shapes),
            confidence="derived" if own else "measured",
            what_to_do=remedy,
            paste=f"torch._dynamo.config.{SWITCH} = False",
            remedy=(f"torch._dynamo.config.{SWITCH}=False",),
            also_at=tuple(_recompiles.callers(tables, cause)),
        )
