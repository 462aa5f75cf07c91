"""
## What it finds
Compiled code that turns a tensor's value into a Python number: `.item()`, `.tolist()`, `int(t)`,
`float(t)`.

## Why it costs
Dynamo ends the graph there, Python reads the number, and a second graph starts after it. Nothing
fuses across the break, every call pays for two guarded entries, and on a GPU the host waits for the
device before it can launch anything more.

## Evidence
A graph break of torch's type GB0124 at the line. The cost is what the profile shows of the break:
Python at the line, and entering compiled code once more; on a GPU, the time that the device idles
meanwhile and while the value is read. Time that belongs to no line is shared by all lines that
break, by how often the code after each is entered. The cost counts as measured if fusing across the
break could add only little to it.

It is information, not a warning, if that is below 5 % of the compiled step and below 0.05 ms, or
below 1 % of it; also if compiling did not hurt and nothing more runs compiled after the break,
unless the break leaves operators of its function in eager: then these are the cost. If
`fullgraph=True` turns the break into an error, the failed compile is the evidence. That is an error
if it ended the script; otherwise the cost is that every call tries to compile again.

## What to do
Keep the value a tensor and read it outside the compiled function, every k-th step if it is for a
log. If the number is needed inside, `torch._dynamo.config.capture_scalar_outputs = True` keeps the
graph whole; branching on such a number still breaks it.

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

from traceview.derive.syntax import only_statement
from traceview.rules import _breaks, _edits
from traceview.rules.kit import Finding, Snippet, Tables

CODE = "TV101"
NEEDS = frozenset({"break_sites"})
SEVERITIES = ("error", "warning", "info")
EXPLAINS = frozenset({"graph_break", "idle_graph_break", "overheads_added"})
#: A compiled training step, which is the thing to change, usually has Python around it.
FOLLOWS = frozenset({"gb-optimizer-or-backward"})

#: ``x.float()`` is a cast and reads nothing; ``float(x)`` does.
_READ = re.compile(r"\.(item|tolist)\(\)|(?<![.\w])(int|float|bool)\(")
_SWITCH = "torch._dynamo.config.capture_scalar_outputs = True"


def check(tables: Tables) -> Iterator[Finding]:
    """One finding per line that turns a tensor into a number."""
    for site in _breaks.sites(tables, "item"):
        match = _READ.search(site.broken or "")
        what = "reading a tensor's value"
        if match:
            what = f"`.{match[1]}()`" if match[1] else f"`{match[2]}()` of a tensor"

        # A diff where ``.detach()`` does all that ``.item()`` did: the number is assigned or
        # calculated with, and neither judged nor handed on. (It carries no gradient, so a bare
        # tensor in its place would keep the autograd graph alive.)
        source, snippet = site.source or "", Snippet("python", _SWITCH)
        statement = only_statement(source) if source.count(".item()") == 1 else None
        assigning = ast.Assign | ast.AugAssign | ast.AnnAssign
        if isinstance(statement, assigning) and _is_item(statement.value):
            snippet = _edits.diff(source, source.replace(".item()", ".detach()"))
        yield _breaks.finding(
            tables,
            site,
            code=CODE,
            rule="gb-item",
            title=_breaks.title(site, what),
            explanation=(
                f"{what[:1].upper()}{what[1:]} needs the tensor's value, which exists only after "
                "the graph has run."
            ),
            then=(
                "So Dynamo ends the graph, Python reads the number, and the code after it is "
                "compiled separately."
            ),
            what_to_do=(
                "Keep it a tensor here and read the number outside the compiled function, every "
                "k-th step if it is for a log. If the number itself must be used inside, let "
                "Dynamo capture it with capture_scalar_outputs; an `if` on it still breaks."
            ),
            snippet=snippet,
            # Of a list each element would be captured alone: a symbol and a read each.
            remedy=() if match and match[1] == "tolist" else (_SWITCH.replace(" ", ""),),
        )


def _is_item(node: ast.expr | None) -> bool:
    """Whether it is a call of ``.item()``, or arithmetic with one; ``%`` may format a string."""
    if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Mod):
        return _is_item(node.left) or _is_item(node.right)
    if isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
        return _is_item(node.operand)
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(called, ast.Attribute) and called.attr == "item"
