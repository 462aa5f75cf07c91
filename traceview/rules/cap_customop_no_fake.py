"""
## What it finds
A custom operator in compiled code without a fake implementation: torch cannot know what it returns
without running it.

## Why it costs
Dynamo traces with tensors that have a shape and no data. An operator made by
`torch.library.custom_op` then raises, where eager runs; one made by `torch.library.define` or
TORCH_LIBRARY ends the graph and runs in eager, and a second graph starts after it.

## Evidence
torch's error "There was no fake impl registered", if it ended the script or made a compile fail; or
graph breaks of torch's type GB0090 that name the operator: one finding for all lines that call it.

An error if it ended the script. A warning if the script caught it, or if the break costs more than
5 % of the compiled step or 0.05 ms; else information.

## What to do
Register one: a function with the same parameters that returns an empty tensor of the right shape,
dtype and device. For training, register an autograd formula too. Tag an operator that waits for the
device or copies to the host with `torch.Tag.cudagraph_unsafe`.

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

from traceview.derive.facts.breaks import unknown_operator
from traceview.rules import _breaks, _failures
from traceview.rules.kit import Cost, Finding, Snippet, Tables, short
from traceview.tables import grouped

CODE = "TV116"
NEEDS = frozenset({"compiles"})
SEVERITIES = ("error", "warning", "info")
EXPLAINS = frozenset({"graph_break", "idle_graph_break", "overheads_added"})

_NO_FAKE = re.compile(r"no fake impl registered for <CustomOpDef\((\w+)::(\w+)\)>")
_NOT_SUPPORTED = re.compile(r"unsupported operator: (?!aten\.|prims?\.)(\w+)\.(\w+)")
_FAKE = """\
@torch.library.register_fake("{namespace}::{name}")
def _(x):  # the same parameters as {name}
    return torch.empty_like(x)  # shape, dtype and device of what it returns"""
_WHAT_TO_DO = (
    "Register a fake implementation of {name}, so that torch can trace past it. If gradients flow "
    "through it, register an autograd formula too."
)


def check(tables: Tables) -> Iterator[Finding]:
    """One finding per operator that raised, and per operator that ended graphs."""
    for pattern in (_NO_FAKE, _NOT_SUPPORTED):
        for failure in _failures.failures(tables, pattern):
            namespace, name = failure.found[1], failure.found[2]
            yield Finding(
                code=CODE,
                rule="cap-customop-no-fake",
                severity=failure.severity,
                title=f"{namespace}::{name} at {short(failure.place)} has no fake implementation",
                explanation=(
                    "Dynamo runs the operator on a tensor without data to learn what it returns. "
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
    sites = _breaks.sites(tables, "custom_op")
    of_operator = grouped(sites, by=lambda site: (site.strict, unknown_operator(site.rows[0])))
    for (_, operator), calls in of_operator.items():
        namespace, name = operator or ("mylib", "my_op")
        site, *others = sorted(calls, key=lambda call: not call.skipped)
        yield _breaks.finding(
            tables,
            site,
            code=CODE,
            rule="cap-customop-no-fake",
            title=_breaks.title(site, f"{namespace}::{name} has no fake implementation", others),
            explanation="Dynamo cannot know what the operator returns without running it.",
            then="So it ends the graph before it and compiles the code after it separately.",
            others=others,
            what_to_do=_WHAT_TO_DO.format(name=name),
            snippet=Snippet("python", _FAKE.format(namespace=namespace, name=name)),
        )
