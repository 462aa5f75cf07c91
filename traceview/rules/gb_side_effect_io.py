"""
## What it finds
`print`, `open`, logging or a warning inside compiled code.

## Why it costs
Dynamo cannot put it into a graph and must keep its order, so the graph ends there and a second
one starts after it: no fusion across the cut, one more guarded entry a call, and a printed tensor
makes the host wait for the device.

## Evidence
A graph break whose reason names the builtin (GB0059), a logger's method (GB0291) or
`warnings.warn`, at the line. The cost is what the profile shows of it: Python
at the break and entering compiled code once more; on a GPU what the device idles meanwhile, and
while the value is read. What no line shows is shared by all lines that break, by the graphs
entered behind each. It is called measured where what fusion could save on top is small beside it.

It is information, not a warning, where that is below 5 % of the compiled step and below 0.05 ms, or
below 1 %; also where compiling did not hurt, nothing more runs compiled after the break, and it is
not known to leave operators of its function in eager: these are the cost otherwise. Where
`fullgraph=True` makes an error of the break, the compile that failed is the evidence, and an error
where it ended the script; else trying it anew at each call is the cost.

## What to do
Move it out of the compiled function, or guard it with `if not torch.compiler.is_compiling():`.
`torch._dynamo.config.reorderable_logging_functions.add(print)` lets it run after the graph, for
tensors, constants and format strings only.

## References
- https://docs.pytorch.org/docs/stable/compile/programming_model.common_graph_breaks.html
- https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0059.html
- torch/_dynamo/config.py, `reorderable_logging_functions`, `ignore_logging_functions`
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traceview.derive.syntax import syntax_tree
from traceview.rules import _break_costs, _breaks, _places
from traceview.rules.finding import Finding, Snippet
from traceview.tables import Tables

CODE = "TV103"
NEEDS = frozenset({"graph_breaks"})
EXPLAINS = frozenset({"graph_break", "idle_graph_break", "overheads_added"})
#: Around a compiled training step, which is the thing to change, there is Python as a rule.
FOLLOWS = frozenset({"gb-optimizer-or-backward"})

_CALL = re.compile(r"\b(print|open|input|breakpoint|warnings\.warn|\w*log\w*\.\w+)\(")


def check(tables: Tables) -> Iterator[Finding]:
    """One finding a line that prints, logs or opens."""
    breaks = tables.once(_break_costs.Breaks)
    for site in _breaks.resumable(tables, _breaks.is_io):
        match = _CALL.search(site.broken or "")
        what = f"`{match[1]}()`" if match else "Input or output"
        yield breaks.finding(
            site,
            code=CODE,
            rule="gb-side-effect-io",
            title=f"{what} at {_places.short(site.place)} {_breaks.effect(tables, site)}",
            explanation=(
                f"{what} reaches outside of the graph and must keep its order, so Dynamo ends the "
                "graph before it and compiles what follows by itself."
            ),
            what_to_do=(
                "Move it out of the compiled function, or leave it out of compiled code: with "
                "is_compiling() it happens in eager only."
            ),
            snippet=_snippet(site.source),
        )


def _snippet(source: str | None) -> Snippet | None:
    """The line behind ``is_compiling``, where it is one such call and nothing besides."""
    if source is None or not _CALL.match(source):
        return None
    tree = syntax_tree(source)
    statement = tree.body[0] if tree and len(tree.body) == 1 else None
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return None
    guarded = f"+ if not torch.compiler.is_compiling():\n+     {source}"
    return Snippet("diff", f"- {source}\n{guarded}")
