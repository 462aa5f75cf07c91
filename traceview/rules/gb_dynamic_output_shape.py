"""
## What it finds
An operator in compiled code whose output has as many elements as a tensor's values say: `x[mask]`,
`nonzero`, `unique`, `masked_select`, `torch.where(condition)`, `one_hot` without `num_classes`.

## Why it costs
How large the result is exists only when the graph has run. Dynamo ends the graph there, the
operator runs in eager, and a second graph starts after it; nothing fuses across the cut, and on a
GPU the host waits for the device to learn the size. As the size changes from call to call, what
follows is compiled again or for symbolic sizes.

## Evidence
A graph break of torch's type GB0036, GB0037 or GB0246 at the line. The cost is what the profile
shows of it: Python at the break, the operator itself and entering compiled code once more. What no
line shows is shared by all lines that break, by the graphs entered behind each.

It is information, not a warning, where that is below 5 % of the compiled step and below 0.05 ms, or
below 1 %; also where compiling did not hurt, nothing more runs compiled after the break, and it is
not known to leave operators of its function in eager: these are the cost otherwise. Where
`fullgraph=True` makes an error of the break, the compile that failed is the evidence, and an error
where it ended the script; else trying it anew at each call is the cost.

## What to do
Keep the shape fixed: `torch.where(mask, value, 0)` and masked sums instead of `x[mask]`,
`torch.topk` with a fixed k, `one_hot(x, num_classes=n)`. Or let Dynamo capture such operators:
`torch._dynamo.config.capture_dynamic_output_shape_ops = True`; code that branches on the resulting
size still breaks then, or raises.

## References
- https://docs.pytorch.org/docs/stable/compile/programming_model.common_graph_breaks.html
- https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0036.html
- torch/_dynamo/config.py, `capture_dynamic_output_shape_ops`
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traceview.rules import _break_costs, _break_kinds, _breaks, _places
from traceview.rules.finding import Finding, Snippet
from traceview.tables import Tables

CODE = "TV106"
NEEDS = frozenset({"graph_breaks"})
EXPLAINS = frozenset({"graph_break", "idle_graph_break", "overheads_added"})

_SWITCH = "torch._dynamo.config.capture_dynamic_output_shape_ops = True"
#: ``aten.nonzero.default`` as torch's explanation names the operator.
_OPERATOR = re.compile(r"\b(?:aten|prims|torchvision|\w+)\.(\w+)\.\w+\b")
_CALL = re.compile(
    r"\b(nonzero|unique|unique_consecutive|masked_select|argwhere|where|one_hot|bincount"
    r"|repeat_interleave|nms)\("
)
_INSTEAD = {
    "one_hot": "Give one_hot its num_classes: then the shape is known.",
    "bincount": "Count with one_hot(x, num_classes=n).sum(0), where n is known.",
    "repeat_interleave": "Give repeat_interleave its output_size, where it is known.",
}


def check(tables: Tables) -> Iterator[Finding]:
    """One finding a line whose output has a size that only the values tell."""
    breaks = tables.once(_break_costs.Breaks)
    for site in _breaks.resumable(tables, _break_kinds.is_dynamic_shape):
        what, name = _what(site)
        yield breaks.finding(
            site,
            code=CODE,
            rule="gb-dynamic-output-shape",
            title=f"{what} at {_places.short(site.place)} {_breaks.effect(tables, site)}",
            explanation=(
                f"{what} gives back as many elements as the values of its input say, which is "
                "known only when the graph has run: Dynamo ends the graph, the operator runs in "
                "eager, and what follows is compiled by itself."
            ),
            what_to_do=(
                _INSTEAD.get(
                    name,
                    "Keep the shape fixed: choose with torch.where(mask, value, 0) and reduce "
                    "over all of it, or take a fixed number with torch.topk.",
                )
                + " Or let Dynamo capture such operators; what then branches on the size still "
                "breaks."
            ),
            snippet=Snippet("python", _SWITCH),
        )


def _what(site: _breaks.Site) -> tuple[str, str]:
    """(what the line does, in words; the name of the operator)."""
    source = site.source or ""
    if called := _CALL.search(source):
        return f"`{called[1]}()`", called[1]
    row = site.rows[0]
    found = _OPERATOR.search(row["context"] or row["explanation"] or row["reason"] or "")
    name = found[1] if found else ""
    if name in ("nonzero", "index", "masked_select") and "[" in source:
        return "Indexing with a mask", name
    return (f"`{name}()`" if name else "An operator of data-dependent size"), name
