"""
## What it finds
A tensor argument whose dtype, strides (memory layout), device, `requires_grad` or number of
dimensions changes between calls.

## Why it costs
Code is generated for one of each. Every other one costs a whole compile, up to the recompile limit.
After that, new ones run in eager.

## Evidence
Recompiles of one function whose deciding guard is on such a property of a tensor ("dtype mismatch",
"stride mismatch", "rank mismatch", …), or on whether two arguments are one tensor.

A warning where the recompiles took at least a second, and at least 5 % of the job where its length
is known, or where the function hit the recompile limit. Otherwise information. A single recompile
is information: two variants are compiled once, whatever alternates.

## What to do
Bring the tensor into one form before the compiled call: `.to(dtype)`, `.contiguous()` (or one
`memory_format`), one device, `.detach()`. A copy costs time where the form was different; a
recompile costs much more.

## Settings
- `fewest_recompiles`: fewer recompiles of one function are information.

## References
- https://docs.pytorch.org/docs/stable/compile/programming_model.recompilation.html
- torch/_dynamo/guards.py, `GuardBuilder.TENSOR_MATCH`
- https://github.com/pytorch/pytorch/issues/131975
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.derive.facts.recompile_causes import keys_changed
from traceview.rules import _recompiles
from traceview.rules._recompiles import FEWEST_RECOMPILES, Cause
from traceview.rules.kit import Finding, Snippet, Tables, times

CODE = "TV208"
NEEDS = frozenset({"recompile_causes"})
SEVERITIES = ("warning", "info")

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
    "dispatch_keys": "Bring {source} to one device and one tensor type before the compiled call",
    "alias": "Pass separate tensors, or always the same one",
}
#: C++ names of dtypes in guards → how Python spells them.
_DTYPES = {
    "Float": "float32",
    "Double": "float64",
    "Half": "float16",
    "BFloat16": "bfloat16",
    "Long": "int64",
    "Int": "int32",
    "Short": "int16",
    "Char": "int8",
    "signed char": "int8",
    "Byte": "uint8",
    "unsigned char": "uint8",
    "Bool": "bool",
    "ComplexFloat": "complex64",
    "ComplexDouble": "complex128",
}
#: What to convert to where it was met: never to integers, which would lose the fractions.
_FLOATS = ("float32", "bfloat16", "float16", "float64")


def check(tables: Tables, *, fewest_recompiles: float = FEWEST_RECOMPILES) -> Iterator[Finding]:
    """One finding a function and property."""
    for cause in _recompiles.causes(tables, "tensor"):
        count = cause.recompiles
        at, cost = _recompiles.reading(tables, cause), cause.cost(tables)
        kind = str(cause.row["kind"])
        tensors = list(dict.fromkeys(Cause((row,)).source for row in cause.rows))
        sources = " and ".join(tensors)
        if len(tensors) > 2:
            sources = f"{tensors[0]} and {len(tensors) - 1} others"
        what = _recompiles.SUBJECTS[kind].format(source=sources)
        values = _values(cause)
        yield Finding(
            code=CODE,
            rule="rc-tensor-meta",
            severity=_recompiles.severity(tables, cause, cost, fewest_recompiles),
            title=(
                f"{_recompiles.opening(cause.function)} recompiled {times(count)}: {what} changes"
                f"{f' ({values})' if values else ''}"
            ),
            explanation=(
                f"Compiled code is valid for one form of its tensors, and {what} is part of it. "
                "Every new form costs a compile."
            ),
            cost=cost,
            confidence="measured",
            location=at.place,
            inside=at.inside,
            about=cause.about,
            evidence=_recompiles.evidence(tables, cause),
            what_to_do=_REMEDY[kind].format(source=sources) + ".",
            snippet=_snippet(cause, kind),
        )


def _values(cause: Cause) -> str:
    if cause.row["kind"] == "dtype":
        met = (row[column] for row in cause.rows for column in ("old", "new"))
        return ", ".join(dict.fromkeys(_dtype(value) for value in met if value))
    if cause.row["kind"] == "dispatch_keys":
        changed = frozenset().union(*(keys_changed(row["old"], row["new"]) for row in cause.rows))
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
