"""
## What it finds
A tensor's value is turned into a Python number inside compiled code: `.item()`, `.tolist()`,
`int(t)`, `float(t)`.

## Why it costs
Dynamo ends the graph there, Python reads the number, and a second graph starts after it. Nothing
fuses across the cut, every call pays for two guarded entries, and on a GPU the host waits for the
device before it can launch anything more.

## Evidence
A graph break of torch's type GB0124 at the line. The cost is what the profile shows of it: Python
at the break and entering compiled code once more; on a GPU what the device idles meanwhile, and
while the value is read. What no line shows is shared by all lines that break, by the graphs
entered behind each. It is called measured where what fusion could save on top is small beside it.

It is information, not a warning, where that is below 5 % of the compiled step and below 0.05 ms, or
below 1 %; also where compiling did not hurt, nothing more runs compiled after the break, and it is
not known to leave operators of its function in eager: these are the cost otherwise. Where
`fullgraph=True` makes an error of the break, the compile that failed is the evidence, and an error
where it ended the script; else trying it anew at each call is the cost.

## What to do
Keep the value a tensor, and read it outside of the compiled function, every k-th step if it is
for a log. Where the number is needed inside, `torch._dynamo.config.capture_scalar_outputs = True`
keeps the graph whole; branching on such a number still breaks it.

## References
- https://docs.pytorch.org/docs/stable/compile/programming_model.common_graph_breaks.html
- https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0124.html
- torch/_dynamo/variables/tensor.py, `TensorVariable.method_item`
- https://github.com/pytorch/pytorch/issues/130917
- https://github.com/pytorch/pytorch/issues/163798
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traceview.derive.syntax import syntax_tree
from traceview.rules import _break_costs, _breaks, _places
from traceview.rules.finding import Finding, Snippet
from traceview.tables import Tables

CODE = "TV101"
NEEDS = frozenset({"graph_breaks"})
EXPLAINS = frozenset({"graph_break", "idle_graph_break", "overheads_added"})
#: Around a compiled training step, which is the thing to change, there is Python as a rule.
FOLLOWS = frozenset({"gb-optimizer-or-backward"})

#: ``x.float()`` is a cast and reads nothing; ``float(x)`` does.
_READ = re.compile(r"\.(item|tolist)\(\)|(?<![.\w])(int|float|bool)\(")


def check(tables: Tables) -> Iterator[Finding]:
    """One finding a line that turns a tensor into a number."""
    breaks = tables.once(_break_costs.Breaks)
    for site in _breaks.resumable(tables, _breaks.is_item):
        what = _read(site.broken)
        yield breaks.finding(
            site,
            code=CODE,
            rule="gb-item",
            title=f"{what} at {_places.short(site.place)} {_breaks.effect(tables, site)}",
            explanation=(
                f"{what} needs the tensor's value, which exists only when the graph has run: "
                "Dynamo ends the graph, Python reads the number, and what follows is compiled by "
                "itself."
            ),
            what_to_do=(
                "Keep it a tensor here and read the number outside of the compiled function, every "
                "k-th step if it is for a log. If the number itself must be used inside, let "
                "Dynamo capture it with capture_scalar_outputs: an `if` on it still breaks."
            ),
            snippet=_snippet(site.source),
        )


def _read(source: str | None) -> str:
    match = _READ.search(source or "")
    if match is None:
        return "Reading a tensor's value"
    return f"`.{match[1]}()`" if match[1] else f"`{match[2]}()` of a tensor"


def _snippet(source: str | None) -> Snippet:
    """A diff where ``.detach()`` does all that ``.item()`` did, else the switch.

    A number carries no gradient, so a bare tensor in its place would keep the autograd graph alive.
    """
    switch = "torch._dynamo.config.capture_scalar_outputs = True"
    if source is None or source.count(".item()") != 1 or not _only_assigned(source):
        return Snippet("python", switch)
    return Snippet("diff", f"- {source}\n+ {source.replace('.item()', '.detach()')}")


def _only_assigned(source: str) -> bool:
    """Whether the number is assigned or calculated with, and neither judged nor handed on."""
    tree = syntax_tree(source)
    statement = tree.body[0] if tree and len(tree.body) == 1 else None
    if isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
        return _is_item(statement.value)
    return False


def _is_item(node: ast.expr | None) -> bool:
    """Whether it is a call of ``.item()``, or arithmetic with one; ``%`` may format a string."""
    if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Mod):
        return _is_item(node.left) or _is_item(node.right)
    if isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
        return _is_item(node.operand)
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(called, ast.Attribute) and called.attr == "item"
