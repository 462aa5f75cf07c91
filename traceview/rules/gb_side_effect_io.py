"""
## What it finds
`print`, `open`, logging or a warning inside compiled code.

## Why it costs
Dynamo cannot put it into a graph and must keep its order, so the graph ends there and a second
one starts after it: no fusion across the break, one more guarded entry per call, and a printed
tensor makes the host wait for the device.

## Evidence
A graph break whose reason names the builtin (GB0059), a logger's method (GB0291) or
`warnings.warn`, at the line. The cost is what the profile shows of the break: Python at the line,
and entering compiled code once more; on a GPU, the time that the device idles meanwhile and while
the value is read. Time that belongs to no line is shared by all lines that break, by how often the
code after each is entered. The cost counts as measured if fusing across the break could add only
little to it.

It is information, not a warning, if that is below 5 % of the compiled step and below 0.05 ms, or
below 1 % of it; also if compiling did not hurt and nothing more runs compiled after the break,
unless the break leaves operators of its function in eager: then these are the cost. If
`fullgraph=True` turns the break into an error, the failed compile is the evidence. That is an error
if it ended the script; otherwise the cost is that every call tries to compile again.

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

from traceview.derive.syntax import only_statement
from traceview.rules import _breaks
from traceview.rules.kit import Finding, Snippet, Tables

CODE = "TV103"
NEEDS = frozenset({"break_sites"})
SEVERITIES = ("error", "warning", "info")
EXPLAINS = frozenset({"graph_break", "idle_graph_break", "overheads_added"})
#: A compiled training step, which is the thing to change, usually has Python around it.
FOLLOWS = frozenset({"gb-optimizer-or-backward"})

_CALL = re.compile(r"\b(print|open|input|breakpoint|warnings\.warn|\w*log\w*\.\w+)\(")


def check(tables: Tables) -> Iterator[Finding]:
    """One finding per line that prints, logs or opens."""
    for site in _breaks.sites(tables, "io"):
        match = _CALL.search(site.broken or "")
        what = f"`{match[1]}()`" if match else "input or output"

        # The line after ``is_compiling``, where it is one such call and nothing else.
        source, snippet = site.source or "", None
        statement = only_statement(source) if _CALL.match(source) else None
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            guarded = f"+ if not torch.compiler.is_compiling():\n+     {source}"
            snippet = Snippet("diff", f"- {source}\n{guarded}")
        yield _breaks.finding(
            tables,
            site,
            code=CODE,
            rule="gb-side-effect-io",
            title=_breaks.title(site, what),
            explanation=(
                f"{what[:1].upper()}{what[1:]} has an effect outside the graph and must happen in "
                "order."
            ),
            then="So Dynamo ends the graph before it and compiles the code after it separately.",
            what_to_do=(
                "Move it out of the compiled function, or skip it in compiled code: with "
                "is_compiling() it runs in eager only."
            ),
            snippet=snippet,
        )
