"""
## What it finds
`mode="reduce-overhead"` (or "max-autotune") that records no cudagraph, because the compiled code
writes into one of its arguments.

## Why it costs
A cudagraph replays fixed addresses and reads its own copies of the inputs, so a write into an
input would be lost. torch skips the recording: every launch is made separately, as without the
mode.

## Evidence
torch's message "skipping cudagraphs due to mutated inputs" with the line that writes. The cost is
the time in which the GPU waits for launches: information where that is little, as then the kernels
are what takes the time.

## What to do
Return the new state instead of writing it in place, or make it a buffer of the module: parameters
and buffers keep their addresses and may be written. So does a tensor that
`torch._dynamo.mark_static_address` has marked before the first call.

## References
- https://docs.pytorch.org/docs/stable/torch.compiler_cudagraph_trees.html
- torch/_inductor/cudagraph_utils.py, `check_for_mutation`
- https://github.com/pytorch/pytorch/issues/121861
- https://github.com/pytorch/pytorch/issues/117281
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traceview.rules._gain import idle_ms, input_behind, inputs_named
from traceview.rules._starts import NO_AUTOGRAD_CACHE
from traceview.rules.kit import (
    Cost,
    Finding,
    Owners,
    Row,
    Snippet,
    Spot,
    Tables,
    first_rank,
    from_row,
    plural,
    rows,
    severity,
    short,
    shorten,
)
from traceview.torchtext.cudagraphs import instances, skip_cause
from traceview.torchtext.fx import read_graph

CODE = "TV510"
NEEDS = frozenset({"compiles", "cudagraph_events"})
SEVERITIES = ("warning", "info")
GPU_ONLY = True

#: The user's name of an input: an argument, or something in it. Of a module it is static anyway.
_ARGUMENT = re.compile(r"(?!self\b)([A-Za-z_]\w*)(\[.*)?$")


def check(tables: Tables) -> Iterator[Finding]:
    """One finding for each line that writes into an input."""
    owners = Owners(tables)
    found: dict[str, list[Row]] = {}
    spots: dict[str, Spot] = {}
    table, column = "cudagraph_events", "reason"
    skips = _said(rows(tables, "cudagraph_events", event="skip"), column)
    if not skips:  # then the compiles' metrics may have kept it
        table, column = "compiles", "cudagraph_skip_reason"
        skips = _said(rows(tables, "compiles"), column)
    for row in skips:
        spot = owners.spot(row) if table == "cudagraph_events" else owners.code(row)
        name = short(spot.place)
        spots.setdefault(name, spot)
        found.setdefault(name, []).append(row)
    if len(found) > 1:  # the same skip as logged without its line
        found.pop(short(None), None)
    for name, group in found.items():
        count = instances(group[0][column])
        inputs = "an input" if count is None else plural(count, "input")
        idle = idle_ms(tables, "launch")
        about = "time of a compiled step in which the GPU waits for launches: the most it can save"
        written = _written(tables, group)
        unknown = "the launches that one cudagraph would replace; not measured"
        yield Finding(
            code=CODE,
            rule="cg-skip-mutation",
            severity=severity(tables, idle),
            title=f"No cudagraph: the code writes into {inputs} at {name}",
            explanation=(
                "A cudagraph replays on its own copies of the inputs, so torch records none where "
                "an input is written. The mode's launches are made one at a time."
            ),
            cost=Cost(about=unknown) if idle is None else Cost(idle, None, about),
            confidence="heuristic" if idle is None else "derived",
            location=spots[name].place,
            inside=spots[name].inside,
            about=owners.about_compiles(*group),
            evidence=tuple(from_row(shorten(row[column]), table, row) for row in group[:3]),
            what_to_do=(
                "Return the new value instead of writing it in place, or register the tensor as a "
                "buffer of the module: buffers keep their addresses and may be written. So does a "
                "tensor that is the same one in every call, once it is marked."
            ),
            snippet=Snippet(
                "python", "torch._dynamo.mark_static_address(state)  # once, before the first call"
            ),
            remedy=(f"static={'/'.join(written)}", NO_AUTOGRAD_CACHE) if written else (),
        )


def _written(tables: Tables, skips: list[Row]) -> list[str]:
    """Arguments that these compiles write into, ``memory[]`` where it holds what they write into.

    torch may not say which compile it was; then those of all.
    """
    found: dict[str, None] = {}
    ids = {row["compile_id"] for row in skips}
    for row in first_rank(rows(tables, "graphs", kind="dynamo_output")):
        if row["compile_id"] not in ids and None not in ids:
            continue
        graph = read_graph(row["text"] or "")
        named = inputs_named(tables, row, graph)
        for node in graph.nodes.values():
            target = input_behind(graph, named, node.inputs[0]) if node.in_place else ""
            if argument := _ARGUMENT.match(named.get(target, "")):
                found[argument[1] + ("[]" if argument[2] else "")] = None
    return list(found)


def _said(found: list[Row], column: str) -> list[Row]:
    return [row for row in found if skip_cause(row[column] or "") == "mutation"]
