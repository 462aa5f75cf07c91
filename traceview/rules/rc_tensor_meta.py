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
from traceview.rules.kit import Finding, Tables
from traceview.torchtext.dtypes import dtype_of

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
#: What to convert to where it was met: never to integers, which would lose the fractions.
_FLOATS = ("float32", "bfloat16", "float16", "float64")


def check(tables: Tables, *, fewest_recompiles: float = FEWEST_RECOMPILES) -> Iterator[Finding]:
    """One finding a function and property."""
    for cause in _recompiles.causes(tables, "tensor"):
        kind = str(cause.row["kind"])
        tensors = list(dict.fromkeys(Cause((row,)).source for row in cause.rows))
        sources = " and ".join(tensors)
        if len(tensors) > 2:
            sources = f"{tensors[0]} and {len(tensors) - 1} others"
        what = _recompiles.SUBJECTS[kind].format(source=sources)

        # What it was, in Python's words, and one line that makes one form of it.
        values, form = cause.values(), ""
        if kind == "dtype":
            met = (row[column] for row in cause.rows for column in ("old", "new"))
            dtypes = dict.fromkeys(dtype_of(name) or name for name in met if name)
            values = ", ".join(dtypes)
            form = next((f"to(torch.{known})" for known in _FLOATS if known in dtypes), "")
        elif kind == "dispatch_keys":
            changed = (keys_changed(row["old"], row["new"]) for row in cause.rows)
            values = ", ".join(sorted(frozenset().union(*changed)))
        elif kind == "stride":
            form = "contiguous()"
        name = cause.source
        yield _recompiles.finding(
            tables,
            cause,
            code=CODE,
            rule="rc-tensor-meta",
            title=f"{what} changes{f' ({values})' if values else ''}",
            explanation=(
                f"Compiled code is valid for one form of its tensors, and {what} is part of it. "
                "Every new form costs a compile."
            ),
            at=_recompiles.reading(tables, cause),
            info=cause.recompiles < fewest_recompiles,
            evidence=_recompiles.evidence(tables, cause),
            what_to_do=_REMEDY[kind].format(source=sources) + ".",
            paste=f"{name} = {name}.{form}  # before the compiled call"
            if form and name.isidentifier()
            else None,
        )
