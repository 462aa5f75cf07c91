"""
## What it finds
A custom operator in compiled code without a fake implementation: torch does not know what it gives
back, short of running it.

## Why it costs
Dynamo traces with tensors that have a shape and no data. An operator made by
`torch.library.custom_op` then raises, where eager runs; one made by `torch.library.define` or
TORCH_LIBRARY ends the graph, is run in eager, and a second graph starts after it.

## Evidence
torch's error "There was no fake impl registered", where it ended the script or a compile failed of
it; or a graph break of torch's type GB0090 that names the operator.

An error where it ended the script. A warning where the script caught it, or where the break costs
more than 5 % of the compiled step or 0.05 ms; else information.

## What to do
Register one: a function of the same parameters that gives back an empty tensor of the right shape,
dtype and device. For training register an autograd formula too; an operator that waits for the
device or copies to the host is to be tagged `torch.Tag.cudagraph_unsafe`.

## References
- https://docs.pytorch.org/docs/stable/library.html
- https://docs.pytorch.org/tutorials/advanced/python_custom_ops.html
- https://meta-pytorch.github.io/compile-graph-break-site/gb/gb4315.html
- torch/_library/custom_ops.py, `CustomOpDef.register_fake`
- torch/_dynamo/utils.py, `get_fake_value`
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traceview.rules import _break_costs, _break_kinds, _breaks, _failures, _places
from traceview.rules.finding import Cost, Finding, Snippet
from traceview.tables import Tables

CODE = "TV116"
NEEDS = frozenset({"compiles"})

_NO_FAKE = re.compile(r"no fake impl registered for <CustomOpDef\((\w+)::(\w+)\)>")
_NOT_SUPPORTED = re.compile(r"unsupported operator: (?!aten\.|prims?\.)(\w+)\.(\w+)")
_FAKE = """\
@torch.library.register_fake("{namespace}::{name}")
def _(x):  # the same parameters as {name}
    return torch.empty_like(x)  # shape, dtype and device of what it gives back"""
_WHAT_TO_DO = (
    "Tell torch what {name} gives back, so that it can trace past it. If gradients flow through "
    "it, register an autograd formula too."
)


def check(tables: Tables) -> Iterator[Finding]:
    """One finding an operator that raised, and one a line where one ended a graph."""
    for pattern in (_NO_FAKE, _NOT_SUPPORTED):
        for failure in _failures.failures(tables, pattern):
            yield _raised(failure)
    breaks = tables.once(_break_costs.Breaks)
    for site in _breaks.resumable(tables, lambda row: bool(_break_kinds.unknown_operator(row))):
        yield _broken(tables, breaks, site)


def _raised(failure: _failures.Failure) -> Finding:
    namespace, name = failure.found[1], failure.found[2]
    return Finding(
        code=CODE,
        rule="cap-customop-no-fake",
        severity=failure.severity,
        title=f"{namespace}::{name} at {_places.short(failure.place)} has no fake implementation",
        explanation=(
            "Dynamo runs the operator on a tensor without data to learn what it gives back. "
            "Without a fake implementation that raises, in compiled code only."
        ),
        cost=Cost(about="the function around it is not compiled"),
        confidence="measured",
        location=failure.place,
        about=failure.about,
        evidence=failure.evidence,
        what_to_do=_WHAT_TO_DO.format(name=name),
        snippet=Snippet("python", _FAKE.format(namespace=namespace, name=name)),
    )


def _broken(tables: Tables, breaks: _break_costs.Breaks, site: _breaks.Site) -> Finding:
    namespace, name = _break_kinds.unknown_operator(site.rows[0]) or ("mylib", "my_op")
    return breaks.finding(
        site,
        code=CODE,
        rule="cap-customop-no-fake",
        title=(
            f"{namespace}::{name} has no fake implementation: at {_places.short(site.place)} it "
            f"{_breaks.effect(tables, site)}"
        ),
        explanation=(
            "Dynamo cannot know what the operator gives back without running it, so it ends the "
            "graph before it and compiles what follows by itself."
        ),
        what_to_do=_WHAT_TO_DO.format(name=name),
        snippet=Snippet("python", _FAKE.format(namespace=namespace, name=name)),
    )
