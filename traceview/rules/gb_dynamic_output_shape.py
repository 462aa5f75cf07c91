"""
## What it finds
An operator in compiled code whose output size depends on a tensor's values: `x[mask]`, `nonzero`,
`unique`, `masked_select`, `torch.where(condition)`, `one_hot` without `num_classes`.

## Why it costs
The size of the result exists only after the graph has run. Dynamo ends the graph there, the
operator runs in eager, and a second graph starts after it; nothing fuses across the break, and on a
GPU the host waits for the device to learn the size. If the size changes from call to call, the code
after it is recompiled, or compiled for symbolic sizes.

## Evidence
A graph break of torch's type GB0036, GB0037 or GB0246 at the line. The cost is what the profile
shows of the break: Python at the line, and entering compiled code once more; on a GPU, the time
that the device idles meanwhile and while the value is read. Time that belongs to no line is shared
by all lines that break, by how often the code after each is entered. The cost counts as measured if
fusing across the break could add only little to it.

It is information, not a warning, if that is below 5 % of the compiled step and below 0.05 ms, or
below 1 % of it; also if compiling did not hurt and nothing more runs compiled after the break,
unless the break leaves operators of its function in eager: then these are the cost. If
`fullgraph=True` turns the break into an error, the failed compile is the evidence. That is an error
if it ended the script; otherwise the cost is that every call tries to compile again.

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

from traceview.rules import _breaks
from traceview.rules.kit import Finding, Snippet, Tables

CODE = "TV106"
NEEDS = frozenset({"break_sites"})
SEVERITIES = ("error", "warning", "info")
EXPLAINS = frozenset({"graph_break", "idle_graph_break", "overheads_added"})

_SWITCH = "torch._dynamo.config.capture_dynamic_output_shape_ops = True"
#: ``aten.nonzero.default`` as torch's explanation names the operator.
_OPERATOR = re.compile(r"\b(?:aten|prims|torchvision|\w+)\.(\w+)\.\w+\b")
_CALL = re.compile(
    r"\b(nonzero|unique|unique_consecutive|masked_select|argwhere|where|one_hot|bincount"
    r"|repeat_interleave|nms)\("
)
_INSTEAD = {
    "one_hot": "Pass num_classes to one_hot: then the shape is known.",
    "bincount": "Count with one_hot(x, num_classes=n).sum(0), if n is known.",
    "repeat_interleave": "Pass output_size to repeat_interleave, if it is known.",
}
_FIXED = (
    "Keep the shape fixed: choose with torch.where(mask, value, 0) and reduce over all of it, or "
    "take a fixed number with torch.topk."
)


def check(tables: Tables) -> Iterator[Finding]:
    """One finding per line whose output size depends on values."""
    for site in _breaks.sites(tables, "dynamic_shape"):
        source, row = site.source or "", site.rows[0]
        named = _CALL.search(source)
        said = row["context"] or row["explanation"] or row["reason"] or ""
        found = named or _OPERATOR.search(said)
        name = found[1] if found else ""
        what = f"`{name}()`" if name else "an operator of data-dependent size"
        if not named and name in ("nonzero", "index", "masked_select") and "[" in source:
            what = "indexing with a mask"
        yield _breaks.finding(
            tables,
            site,
            code=CODE,
            rule="gb-dynamic-output-shape",
            title=_breaks.title(site, what),
            explanation=(
                f"{what[:1].upper()}{what[1:]} returns a tensor whose size depends on its input's "
                "values, so the size is known only after the graph has run."
            ),
            then=(
                "Dynamo ends the graph, the operator runs in eager, and the code after it is "
                "compiled separately."
            ),
            what_to_do=(
                f"{_INSTEAD.get(name, _FIXED)} Or let Dynamo capture such operators; code that "
                "branches on the size still breaks then."
            ),
            snippet=Snippet("python", _SWITCH),
            remedy=("torch._dynamo.config.capture_dynamic_output_shape_ops=True",),
        )
