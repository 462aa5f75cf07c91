"""
## What it finds
`if`, `while` or `assert` on a tensor's value inside compiled code; also `torch.equal`, which
returns a Python bool.

## Why it costs
Which branch to trace depends on a value that exists only when the graph runs. Dynamo ends the
graph, Python decides, and each branch gets a graph of its own: no fusion across the break, more
guarded entries per call, and on a GPU a wait for the device at each decision.

## Evidence
A graph break of torch's type GB0170 (older: GB0035) at the line, or GB0033 for an operator other
than the one that `.item()` calls. The cost is what the profile shows of the break: Python at the
line, and entering compiled code once more; on a GPU, the time that the device idles meanwhile and
while the value is read. Time that belongs to no line is shared by all lines that break, by how
often the code after each is entered. The cost counts as measured if fusing across the break could
add only little to it.

It is information, not a warning, if that is below 5 % of the compiled step and below 0.05 ms, or
below 1 % of it; also if compiling did not hurt and nothing more runs compiled after the break,
unless the break leaves operators of its function in eager: then these are the cost. If
`fullgraph=True` turns the break into an error, the failed compile is the evidence. That is an error
if it ended the script; otherwise the cost is that every call tries to compile again.

## What to do
Compute both sides and choose with `torch.where` if both are cheap, or use `torch.cond` if they are
not. Move the decision out of the compiled function if it seldom changes. For checks such as NaN use
`torch._assert_async`, or check outside.

## References
- https://docs.pytorch.org/docs/stable/compile/programming_model.common_graph_breaks.html
- https://docs.pytorch.org/docs/stable/higher_order_ops/cond.html
- https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0170.html
- torch/_dynamo/symbolic_convert.py, `generic_jump`
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traceview.derive.facts.breaks import VALUE_OPERATOR
from traceview.rules import _breaks
from traceview.rules.kit import Finding, Snippet, Tables

CODE = "TV102"
NEEDS = frozenset({"break_sites"})
SEVERITIES = ("error", "warning", "info")
EXPLAINS = frozenset({"graph_break", "idle_graph_break", "overheads_added"})
#: A compiled training step, which is the thing to change, usually has Python around it.
FOLLOWS = frozenset({"gb-optimizer-or-backward"})

_KEYWORDS = frozenset({"if", "elif", "while", "assert"})
_ATEN = re.compile(r"aten\.(\w+)")
_WHERE = "y = torch.where(condition, value_if_true, value_if_false)"
#: A tensor where ``torch.equal`` gives a bool; it raises, not answers False, where shapes differ.
_EQUAL = "y = torch.where((a == b).all(), value_if_true, value_if_false)  # a, b of one shape"


def check(tables: Tables) -> Iterator[Finding]:
    """One finding per line that branches on a tensor."""
    for site in _breaks.resumable(tables, "data_dependent"):
        word = (site.broken or "").split(" ", 1)[0].rstrip(":(")
        contexts = (row["context"] or "" for row in site.rows if row["gb_id"] == VALUE_OPERATOR)
        asked = next((found[1] for found in map(_ATEN.search, contexts) if found), None)
        if word in _KEYWORDS:
            what = f"`{word}` branches on"
        elif asked:
            what = f"`{asked}()` asks for"
        else:
            what = "a decision depends on"
        yield _breaks.finding(
            tables,
            site,
            code=CODE,
            rule="gb-data-dependent",
            title=_breaks.title(site, f"{what} a tensor's value"),
            explanation=(
                "Which way to go is known only after the graph has run. So Dynamo ends the graph "
                "here, lets Python decide, and compiles each way separately."
            ),
            what_to_do=(
                "Compute both sides and choose with torch.where (gradients flow through both, and "
                "so does NaN). If a side is expensive, use torch.cond: both sides must return the "
                "same shapes and dtypes and change nothing outside. Or decide before the compiled "
                "call and pass the result in."
            ),
            snippet=Snippet("python", _EQUAL if asked == "equal" else _WHERE),
        )
