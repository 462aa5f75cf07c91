"""
## What it finds
A tensor argument whose dtype, strides (memory layout), device, `requires_grad` or number of
dimensions changes from call to call.

## Why it costs
Code is generated for one of each. Every other one is a whole compile, until the recompile limit;
from then on new ones run in eager.

## Evidence
Recompiles of one function whose deciding guard is on such a property of a tensor ("dtype mismatch",
"stride mismatch", "rank mismatch", …), or on whether two arguments are one tensor.

A warning where compiling it again took a second or more, and 5 % of a job whose length is known, or
where the function met the recompile limit; else information. A single recompile is
information: two variants are compiled once, whatever alternates.

## What to do
Bring the tensor into one form before the compiled call: `.to(dtype)`, `.contiguous()` (or one
`memory_format`), one device, `.detach()`. A copy costs time where the form was wrong, a recompile
costs much more.

## Settings
- `fewest_recompiles`: fewer recompiles of one function are information.

## References
- https://docs.pytorch.org/docs/stable/compile/programming_model.recompilation.html
- torch/_dynamo/guards.py, `GuardBuilder.TENSOR_MATCH`
- https://github.com/pytorch/pytorch/issues/131975
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules import _recompile_kinds, _recompile_places, _recompiles
from traceview.rules._recompile_kinds import FEWEST_RECOMPILES
from traceview.rules._recompiles import Cause
from traceview.rules.finding import Finding, Snippet
from traceview.tables import Tables
from traceview.words.numbers import times

CODE = "TV208"
NEEDS = frozenset({"recompiles"})

_REMEDY = {
    "dtype": "Convert {source} to one dtype before the compiled call",
    "stride": (
        "Bring {source} into one memory layout before the compiled call: `.contiguous()`, or one "
        "`memory_format` for all"
    ),
    "rank": "Give {source} one number of dimensions before the compiled call: reshape or unsqueeze",
    "device": "Move {source} to one device before the compiled call",
    "requires_grad": (
        "Keep requires_grad of {source} the same: `.detach()` inputs that need no gradient; freeze "
        "parameters once, before the first call"
    ),
    "dispatch_keys": "Bring {source} to one device and one kind of tensor before the compiled call",
    "alias": "Pass separate tensors, or always the same one",
}
#: C++ names of dtypes in guards → how Python spells them.
_DTYPES = {
    "Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16",
    "Long": "int64", "Int": "int32", "Short": "int16", "Char": "int8", "Byte": "uint8",
    "unsigned char": "uint8", "signed char": "int8", "Bool": "bool",
    "ComplexFloat": "complex64", "ComplexDouble": "complex128",
}  # fmt: skip
#: What to convert to where it was met: never to integers, which would lose the fractions.
_FLOATS = ("float32", "bfloat16", "float16", "float64")


def check(tables: Tables, *, fewest_recompiles: float = FEWEST_RECOMPILES) -> Iterator[Finding]:
    """One finding a function and property."""
    for cause in _recompile_kinds.causes(tables, "tensor"):
        count = _recompile_kinds.recompiles(cause)
        at, cost = _recompile_places.reading(tables, cause), cause.cost(tables)
        kind, sources = str(cause.row["kind"]), _sources(cause)
        what = _recompiles.SUBJECTS[kind].format(source=sources)
        values = _values(cause)
        yield Finding(
            code=CODE,
            rule="rc-tensor-meta",
            severity=_recompile_kinds.severity(tables, cause, cost, fewest_recompiles),
            title=(
                f"{_opening(what)} changes from call to call"
                f"{f' ({values})' if values else ''}, which recompiled {cause.function} "
                f"{times(count)}"
            ),
            explanation=(
                f"Compiled code is made for one form of its tensors, and {what} is part of it. "
                "Each form that has not been met before is compiled once more."
            ),
            cost=cost,
            confidence="measured",
            location=at.place,
            inside=at.inside,
            about=cause.about,
            evidence=_recompile_kinds.evidence(tables, cause),
            what_to_do=_REMEDY[kind].format(source=sources) + ".",
            snippet=_snippet(cause, kind),
        )


def _opening(what: str) -> str:
    """``requires_grad`` is code and stays as it is."""
    return what if what.startswith("requires_grad") else what[:1].upper() + what[1:]


def _sources(cause: Cause) -> str:
    """``x``, ``x and y``, or ``x and 3 others``."""
    names = list(dict.fromkeys(Cause((row,)).source for row in cause.rows))
    if len(names) < 3:
        return " and ".join(names)
    return f"{names[0]} and {len(names) - 1} others"


def _values(cause: Cause) -> str:
    if cause.row["kind"] == "dtype":
        met = (row[column] for row in cause.rows for column in ("old", "new"))
        return ", ".join(dict.fromkeys(_dtype(value) for value in met if value))
    if cause.row["kind"] == "dispatch_keys":
        changed = frozenset().union(*map(_recompile_kinds.keys_changed, cause.rows))
        return ", ".join(sorted(changed))
    return "" if cause.row["kind"] == "stride" else cause.values()


def _dtype(name: str) -> str:
    return _DTYPES.get(name, name)


def _snippet(cause: Cause, kind: str) -> Snippet | None:
    name = cause.source
    if not name.isidentifier():
        return None
    if kind == "stride":
        return Snippet("python", f"{name} = {name}.contiguous()  # before the compiled call")
    met = {_dtype(row[column] or "") for row in cause.rows for column in ("old", "new")}
    dtype = next((known for known in _FLOATS if known in met), None)
    if kind != "dtype" or dtype is None:
        return None
    return Snippet("python", f"{name} = {name}.to(torch.{dtype})  # before the compiled call")
