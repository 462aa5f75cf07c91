"""
## What it finds
Convolutions in compiled code whose tensors are in the default memory format, where channels last
takes less time.

## Why it costs
Kernels of cuDNN for tensor cores read all channels of a pixel together. Tensors in the default
format (NCHW) are transposed before such a kernel and back after it, around each convolution.
Inductor puts a graph's convolutions into channels last by itself, but not where a size is symbolic,
nor where its estimate for inference is against it, nor where one convolution of the graph has
groups of more than one channel.

## Evidence
At the script's end the heaviest convolutions are timed on the step's own shapes, as they are and in
channels last, forward only. The saving is that part of the convolutions in a compiled step, or the
time of cuDNN's kernels that transpose tensors, forward and backward, where that is more. Other
kernels are taken to need the same time in both formats.

## What to do
Convert the model and its inputs once: `model.to(memory_format=torch.channels_last)`. Where sizes
are symbolic and there are few of them, `dynamic=False` lets Inductor choose the format.

## Settings
- `least_share`: part of the compiled step, 0 to 1, that the other format must save.

## References
- https://docs.pytorch.org/tutorials/intermediate/memory_format_tutorial.html
- https://docs.nvidia.com/deeplearning/performance/dl-performance-convolutional/index.html
- torch/_inductor/graph.py, `decide_layout_opt`
- torch/_inductor/config.py, `layout_optimization`
- https://github.com/pytorch/pytorch/issues/102670
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traceview.rules._gain import Timed, paced, slowest_lines
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Snippet,
    Tables,
    first_rank,
    milliseconds,
    percent,
    rows,
    severity,
    short,
    step_ms,
)
from traceview.torchtext.fx import read_graph, tensor_sizes

CODE = "TV439"
NEEDS = frozenset({"shape_gains", "accounting", "step_counts"})
SEVERITIES = ("warning", "info")

#: A smaller gain is hard to tell from noise.
LEAST_SHARE = 0.05
_WAY, _KIND = "channels last", "convolution"
_CALLED = "aten.convolution"
_FEW = " Where there are few sizes, dynamic=False lets Inductor choose the format."
_TRANSPOSES = re.compile(r"nchwToNhwc|nhwcToNchw")


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """At most one finding: all convolutions of the step."""
    gains = first_rank(rows(tables, "shape_gains", kind=_KIND, way=_WAY))
    step = step_ms(tables, "compiled")
    if not gains or not step:
        return
    timed = Timed.of_category(tables, gains, _KIND)
    ran = first_rank(rows(tables, "matched_kernels", stance="compiled", category=_KIND))
    transposing = [row for row in ran if _TRANSPOSES.search(row["name"])]
    # Forwards alone were timed; these kernels are those of the backward as well.
    moved, pace = paced(tables, sum(row["ms"] or 0.0 for row in transposing))
    saved = max(timed.saved, moved)
    if saved < least_share * step:
        return
    places = slowest_lines(ran)
    at = f", the longest at {short(places[0])}," if places else ""
    symbolic = _symbolic(tables)
    measured = timed.said("as they are", f"in {_WAY}")
    yield Finding(
        code=CODE,
        rule="ind-channels-last",
        severity=severity(tables, saved),
        title=(
            f"Convolutions{at} are not in {_WAY}, which would save {milliseconds(saved)}, "
            f"{percent(saved / step)} of the step"
        ),
        explanation=(
            "In the default format the library transposes each convolution's tensors. "
            + (
                "Inductor puts convolutions of fixed sizes into channels last by itself; these "
                "have symbolic sizes."
                if symbolic
                else "Inductor left them in that format."
            )
        ),
        cost=(
            timed.cost("convolutions", measured)
            if saved > moved
            else Cost(moved, None, f"kernels of cuDNN's that transpose around convolutions{pace}")
        ),
        confidence="measured" if saved > moved else "derived",
        location=places[0] if places else None,
        evidence=(
            Evidence(f"convolutions on this step's shapes: {measured}", "shape_gains"),
            *(
                Evidence(f"{row['name']}: {milliseconds(row['ms'])} of a step", "matched_kernels")
                for row in sorted(transposing, key=lambda row: -row["ms"])[:2]
            ),
        ),
        what_to_do=(
            f"Convert the model and its inputs to channels last, once.{_FEW if symbolic else ''}"
        ),
        snippet=Snippet(
            "python",
            "model = model.to(memory_format=torch.channels_last)\n"
            "images = images.to(memory_format=torch.channels_last)",
        ),
        remedy=("channels_last", *(("dynamic=False",) if symbolic else ())),
        also_at=tuple(places[1:4]),
        weighs=True,
    )


def _symbolic(tables: Tables) -> bool:
    """Whether a convolution of a compiled graph has a size that is a symbol."""
    for row in first_rank(rows(tables, "graphs", kind="post_grad")):
        if f"{_CALLED}.default(" not in (row["text"] or ""):
            continue
        graph = read_graph(row["text"])
        for node in graph.operations:
            metas = [graph.nodes[name].meta for name in node.inputs[:2]]
            if node.op == _CALLED and any(meta and tensor_sizes(meta) is None for meta in metas):
                return True
    return False
