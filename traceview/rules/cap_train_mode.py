"""
## What it finds
A module that only runs forward and is in training mode: its dropout drops values, or its batch norm
uses the statistics of each batch.

## Why it costs
The results are wrong for inference: they are random with dropout, and depend on the rest of the
batch with batch norm, whose running statistics change in every call. Each call also draws the
random numbers and computes the statistics; in evaluation dropout does nothing, and a batch norm can
be merged into the layer before it.

## Evidence
Dynamo's graph calls `dropout` or `batch_norm` with `training=True`. The steps are calls, no
backward was compiled, and the script has no optimizer and asks for no gradients anywhere. Silent
for a dropout of probability 0, and for a batch norm without running statistics.

## What to do
Call `model.eval()` before the first compiled call. A script that draws several results with dropout
on purpose (Monte Carlo dropout) can ignore this.

## References
- https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html
- https://docs.pytorch.org/docs/stable/notes/autograd.html
- torch/nn/modules/batchnorm.py, `_BatchNorm.forward`
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Location,
    Row,
    Snippet,
    Tables,
    about_calls,
    compile_call,
    first,
    first_rank,
    from_row,
    if_users,
    region_of,
    rows,
    short,
)
from traceview.tables import grouped
from traceview.torchtext.fx import Node, read_nodes, training_only

CODE = "TV119"
NEEDS = frozenset({"graphs", "runs", "compile_regions", "backward_calls"})
SEVERITIES = ("warning",)


def check(tables: Tables) -> Iterator[Finding]:
    """One finding for each compiled callable."""
    run = first(tables, "runs")
    lazy = rows(tables, "compile_intervals", trigger="lazy_backward")
    if run is None or run["step_kind"] != "call" or lazy or tables["backward_calls"].height:
        return
    found: list[tuple[Row, Node, str]] = [
        (graph, node, kind)
        for graph in first_rank(rows(tables, "graphs", kind="dynamo_output"))
        for node in read_nodes(graph["text"] or "")
        if (kind := training_only(node))
    ]
    by_region = grouped(
        found, by=lambda one: (region_of(tables, one[0]["compile_key"]) or {}).get("region_id")
    )
    for region_id, layers in by_region.items():
        region = first(tables, "regions", region_id=region_id) if region_id is not None else None
        kinds = sorted({kind for _, _, kind in layers})
        places = [
            place for _, node, _ in layers if node.place and (place := if_users(*node.place[:3]))
        ]
        name = region["name"] if region else "The compiled module"
        evidence = []
        for graph, node, _ in layers[:2]:
            where = f" at {short(Location(node.place.file, node.place.line))}" if node.place else ""
            called = f"{node.target.rpartition('.')[2]}(…, training=True){where}"
            evidence.append(from_row(f"{called} in the graph", "graphs", graph))
        yield Finding(
            code=CODE,
            rule="cap-train-mode",
            severity="warning",
            title=f"{name} only runs forward, with {' and '.join(kinds)} in training mode",
            explanation=(
                "Dropout draws new random numbers in every call, and batch norm uses and updates "
                "the statistics of each batch: results depend on chance and on the batch. "
                "Modules are in training mode until eval() is called."
            ),
            cost=Cost(about="the results, and work that evaluation leaves out"),
            confidence="derived",
            location=compile_call(region) or next(iter(places), None),
            also_at=tuple(dict.fromkeys(places))[:3],
            evidence=(
                *evidence,
                Evidence("no backward was compiled, the script asks for none", "backward_calls"),
            ),
            what_to_do=(
                "Switch the module to evaluation before its first compiled call. Leave it as it is "
                "only if the script draws several results with dropout on purpose."
            ),
            snippet=Snippet("python", "model.eval()"),
            about=about_calls(tables, region),
        )
