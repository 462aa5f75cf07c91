"""
## What it finds
`if`, `while` or `assert` on the value of a tensor inside compiled code; `torch.equal`, whose answer
is a bool of Python's.

## Why it costs
Which branch to trace depends on a value that exists only when the graph runs. Dynamo ends the
graph, Python decides, and each branch gets a graph of its own: no fusion across the cut, more
guarded entries a call, and on a GPU a wait for the device at each decision.

## Evidence
A graph break of torch's type GB0170 (older: GB0035) at the line, or GB0033 for an operator other
than the one that `.item()` calls. The cost is what the profile
shows of it: Python at the break and entering compiled code once more; on a GPU what the device
idles meanwhile, and while the value is read. What no line shows is shared by all lines that break,
by the graphs entered behind each. It is called measured where what fusion could save on top is
small beside it.

It is information, not a warning, where that is below 5 % of the compiled step and below 0.05 ms, or
below 1 %; also where compiling did not hurt, nothing more runs compiled after the break, and it is
not known to leave operators of its function in eager: these are the cost otherwise. Where
`fullgraph=True` makes an error of the break, the compile that failed is the evidence, and an error
where it ended the script; else trying it anew at each call is the cost.

## What to do
Compute both and choose with `torch.where` where both are cheap; `torch.cond` where they are not;
move the decision out of the compiled function where it changes seldom. For checks of NaN and the
like use `torch._assert_async` or check outside.

## References
- https://docs.pytorch.org/docs/stable/compile/programming_model.common_graph_breaks.html
- https://docs.pytorch.org/docs/stable/higher_order_ops/cond.html
- https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0170.html
- torch/_dynamo/symbolic_convert.py, `generic_jump`
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traceview.rules import _break_costs, _breaks, _places
from traceview.rules.finding import Finding, Snippet
from traceview.tables import Tables

CODE = "TV102"
NEEDS = frozenset({"graph_breaks"})
EXPLAINS = frozenset({"graph_break", "idle_graph_break", "overheads_added"})
#: Around a compiled training step, which is the thing to change, there is Python as a rule.
FOLLOWS = frozenset({"gb-optimizer-or-backward"})

_KEYWORDS = frozenset({"if", "elif", "while", "assert"})
_ATEN = re.compile(r"aten\.(\w+)")
_WHERE = "y = torch.where(condition, value_if_true, value_if_false)"
#: A tensor where ``torch.equal`` gives a bool; it raises, not answers False, where shapes differ.
_EQUAL = "y = torch.where((a == b).all(), value_if_true, value_if_false)  # a, b of one shape"


def check(tables: Tables) -> Iterator[Finding]:
    """One finding a line that branches on a tensor."""
    breaks = tables.once(_break_costs.Breaks)
    for site in _breaks.resumable(tables, _breaks.is_data_dependent):
        yield breaks.finding(
            site,
            code=CODE,
            rule="gb-data-dependent",
            title=_title(site),
            explanation=(
                "Which way to go is known only when the graph has run, so Dynamo ends the graph "
                "here, lets Python decide, and compiles each way separately."
            ),
            what_to_do=(
                "Compute both sides and choose with torch.where (gradients flow through both, NaN "
                "too); use torch.cond if a side is dear (both must give the same shapes and types "
                "and change nothing outside); or decide before the compiled call and pass the "
                "result in."
            ),
            snippet=Snippet("python", _EQUAL if _operator(site) == "equal" else _WHERE),
        )


def _title(site: _breaks.Site) -> str:
    at = _places.short(site.place)
    word = (site.broken or "").split(" ", 1)[0].rstrip(":(")
    if word in _KEYWORDS:
        return f"`{word}` at {at} branches on a tensor's value"
    operator = _operator(site)
    asked = f"`{operator}()` at {at} asks for" if operator else f"A decision at {at} branches on"
    return f"{asked} a tensor's value"


def _operator(site: _breaks.Site) -> str | None:
    """The operator that answers a question about values: ``equal``."""
    for row in site.rows:
        if row["gb_id"] == _breaks.VALUE_OPERATOR and (found := _ATEN.search(row["context"] or "")):
            return found[1]
    return None
