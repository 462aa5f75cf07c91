"""
## What it finds
A custom operator without an autograd formula in code that gradients flow through.

## Why it costs
An operator made by `torch.library.custom_op` raises in the backward, and compiled already when the
backward is traced, in the first call. One made by `torch.library.define` or TORCH_LIBRARY only
warns: the gradients of everything before it are missing or wrong, and parameters there do not
learn.

## Evidence
torch's error "Trying to backward through … but no autograd formula was registered", if it ended the
script or made a compile fail; or torch's warning that an autograd kernel was not registered.

## What to do
Register a formula with `torch.library.register_autograd`. If no gradient should flow there, detach
what goes in.

## References
- https://docs.pytorch.org/docs/stable/library.html
- https://docs.pytorch.org/tutorials/advanced/python_custom_ops.html
- torch/_library/autograd.py, `make_autograd_impl`
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traceview.rules import _failures
from traceview.rules.kit import Cost, Evidence, Finding, Snippet, Tables, first_rank, rows, short

CODE = "TV121"
NEEDS = frozenset({"runs"})
SEVERITIES = ("error", "warning")

_NO_FORMULA = re.compile(r"backward through (\w+)\W+(\w+)[\w.]* but no autograd formula")
_WARNED = re.compile(r"(\w+)::(\w+): an autograd kernel was not registered")
_FORMULA = """\
def setup_context(ctx, inputs, output):
    ctx.save_for_backward(*inputs)

def backward(ctx, grad):
    ...  # one gradient for each argument of {name}; None where there is none

torch.library.register_autograd("{namespace}::{name}", backward, setup_context=setup_context)"""
_WHAT_TO_DO = (
    "Register an autograd formula for {name}. If no gradient should flow through it, call it on "
    "x.detach()."
)


def check(tables: Tables) -> Iterator[Finding]:
    """One finding per operator."""
    seen: set[tuple[str, str]] = set()
    for failure in _failures.failures(tables, _NO_FORMULA):
        namespace, name = failure.found[1], failure.found[2]
        seen.add((namespace, name))
        yield Finding(
            code=CODE,
            rule="cap-customop-no-autograd",
            severity=failure.severity,
            title=f"{namespace}::{name} at {short(failure.place)} has no autograd formula",
            explanation=(
                "Gradients flow through the operator, and torch does not know how. Compiled code "
                "raises in the first call, where the backward is traced; eager code raises in the "
                "backward."
            ),
            cost=Cost(about="the function around it is not compiled, and nothing is trained"),
            confidence="measured",
            location=failure.place,
            about=failure.about,
            evidence=failure.evidence,
            what_to_do=_WHAT_TO_DO.format(name=name),
            snippet=Snippet("python", _FORMULA.format(namespace=namespace, name=name)),
        )
    for row in first_rank(rows(tables, "warnings")):
        warned = _WARNED.search(row["message"] or "")
        if warned is None or (warned[1], warned[2]) in seen:
            continue
        namespace, name = warned[1], warned[2]
        seen.add((namespace, name))
        yield Finding(
            code=CODE,
            rule="cap-customop-no-autograd",
            severity="warning",
            title=f"{namespace}::{name} has no autograd formula: gradients before it are lost",
            explanation=(
                "torch only warns here. Compiled code gives what comes before the operator no "
                "gradient, and eager code may give it another."
            ),
            cost=Cost(about="parameters before the operator do not learn"),
            confidence="measured",
            location=None,
            evidence=(Evidence(warned[0], "warnings"),),
            what_to_do=_WHAT_TO_DO.format(name=name),
            snippet=Snippet("python", _FORMULA.format(namespace=namespace, name=name)),
        )
