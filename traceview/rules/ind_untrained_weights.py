"""
## What it finds
A backward that computes gradients of weights which no optimizer trains, such as those of a frozen
network in a perceptual loss, a critic or a teacher.

## Why it costs
A weight with `requires_grad` gets a gradient in every backward, whether or not anything uses it.
The gradient of a convolution's or a linear layer's weight is as much work as that of its input.
Where none of the weights before it is trained, a branch needs no backward at all. The compiler
can't know: the gradients are results, which the script may read.

## Evidence
After a profiler window the script's optimizers and modules are looked at: weights that are in no
optimizer and whose gradients were added up for 16 steps or more without being reset. Dynamo's graph
has their names, and the backward's graph says which result is whose gradient. The cost is the part
of the backward's products and convolutions that only these gradients need, by their operations, of
the time that the library takes for them. What generated kernels take for them comes on top. Where a
GPU waits for launches, it is that part of these waits instead: of the backward's kernels the part
of its operations that only these gradients need, and one kernel for each gradient that is added up.

## What to do
`network.requires_grad_(False)` before the first call. Gradients still flow through it to its input.

## Settings
- `least_share`: part of the compiled step, 0 to 1, that these gradients must take.

## References
- https://docs.pytorch.org/docs/stable/notes/autograd.html#setting-requires-grad
- https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html
- torch/_functorch/partitioners.py
- torch/csrc/autograd/functions/accumulate_grad.h
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Set
from math import prod
from typing import NamedTuple

from traceview.derive.origins.work import LIBRARY
from traceview.rules._gain import at_first, idle_ms, is_starved, location
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Location,
    Snippet,
    Tables,
    first_rank,
    milliseconds,
    percent,
    plural,
    rows,
    severity,
    step_ms,
)
from traceview.torchtext.fx import Graph, read_graph, tensor_sizes

CODE = "TV441"
NEEDS = frozenset({"untrained_weights", "graphs", "matched_kernels", "step_counts"})
SEVERITIES = ("warning", "info")

#: Less of a step is hard to tell from noise.
LEAST_SHARE = 0.05
#: Part of a step in which the GPU waits for the host, from which on the host sets the pace.
MOST_WAITING = 0.10
_GRADIENT = re.compile(r"(\w+),\s+# GradAOTOutput\(grad_of=PlainAOTInput\(idx=(\d{1,6})\)\)")
_PART = re.compile(r"_(?:modules|parameters)_")
_CONVOLUTION = "aten.convolution_backward"
#: Sizes of the operands whose product is a product's operations.
_PRODUCTS = frozenset({"aten.mm", "aten.addmm", "aten.bmm", "aten.baddbmm"})
#: Results of a convolution's backward that take as much work as it does forward.
_HALVES = ("[0]", "[1]")


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """At most one finding: all such weights."""
    untrained = {row["name"]: row["additions"] for row in rows(tables, "untrained_weights")}
    step = step_ms(tables, "compiled")
    if not untrained or not step:
        return
    names, places = dict[str, None](), dict[Location, None]()
    ms = kernels = 0.0
    for lost, mine, where_used in backwards(tables, untrained.keys()):
        ms += lost.ms
        kernels += lost.kernels
        names |= dict.fromkeys(mine)
        places |= dict.fromkeys(where_used)
    counts = first_rank(rows(tables, "step_counts", stance="compiled"))
    whole = counts[0]["kernels"] if counts else None
    about = "products and convolutions that only these gradients need"
    waits = (idle_ms(tables) or 0.0) - (idle_ms(tables, "device") or 0.0)
    paced = waits >= MOST_WAITING * step
    if is_starved(tables) and whole and kernels:
        ms = min(1.0, (kernels + len(names)) / whole) * (idle_ms(tables, "launch") or 0.0)
        about, paced = "waits for launches, by the kernels that only these gradients need", False
    if not names or ms < least_share * step:
        return
    where = list(places)
    at = at_first(*where)
    first = next(iter(names))
    yield Finding(
        code=CODE,
        rule="ind-untrained-weights",
        severity="info" if paced else severity(tables, ms),
        title=(
            f"The backward computes gradients of {plural(len(names), 'weight')}{at} that no "
            f"optimizer trains: {milliseconds(ms)}, {percent(min(1.0, ms / step))} of the step"
        ),
        explanation=(
            f"{first}{' and others require' if len(names) > 1 else ' requires'} gradients. They "
            "are computed in every backward and added up, and nothing resets or uses them."
            + (
                f" The GPU waits {milliseconds(waits)} for the host: less is saved."
                if paced
                else ""
            )
        ),
        cost=Cost(ms, None, about),
        confidence="derived",
        location=where[0] if where else None,
        evidence=(
            Evidence(
                f"gradient of {first}: added up {untrained[first]:,} times, never reset",
                "untrained_weights",
            ),
        ),
        what_to_do=(
            "Switch their gradients off before the first call. Gradients still flow through them "
            "to their inputs."
        ),
        snippet=Snippet("python", f"model.{first.partition('.')[0]}.requires_grad_(False)"),
        also_at=tuple(where[1:4]),
        weighs=True,
    )


class Lost(NamedTuple):
    """What only such gradients need: ms of library calls, or parts of them; kernels, as a count."""

    ms: float
    kernels: float


def backwards(
    tables: Tables, untrained: Set[str]
) -> Iterator[tuple[Lost, list[str], list[Location]]]:
    """Of each compiled backward: what only such gradients need, of which weights, used where."""
    spent: dict[str, float] = defaultdict(float)  # in library operators
    launched: dict[str, float] = defaultdict(float)
    for row in first_rank(rows(tables, "matched_kernels", stance="compiled")):
        if (row["aot_id"] or "").endswith("backward"):
            launched[row["compile_id"]] += row["count"] or 0.0
            if row["category"] in LIBRARY:
                spent[row["compile_id"]] += row["ms"] or 0.0
    texts = first_rank(rows(tables, "graphs", kind="dynamo_output"))
    captured = {row["compile_key"]: read_graph(row["text"] or "") for row in texts}
    for row in first_rank(rows(tables, "graphs", kind="aot_backward")):
        if (forward := captured.get(row["compile_key"])) is None:
            continue
        given = forward.inputs
        known = {n: path(node.name) for n, node in enumerate(given)}
        mine = {n: name for n, name in known.items() if name in untrained}
        library, operations = needless(row["text"] or "", mine.keys()) if mine else (0.0, 0.0)
        if library:
            lines = (_used_at(forward, given[n].name) for n in mine)
            key = row["compile_id"]
            lost = Lost(library * spent[key], operations * launched[key])
            yield lost, list(mine.values()), [*filter(None, lines)]


def _used_at(graph: Graph, name: str) -> Location | None:
    """Line of the first operation that reads an input, which may have another name there."""
    while user := next((graph.nodes[each] for each in graph.users[name]), None):
        if user.target:
            return location(user.user_line or "")
        name = user.name
    return None


def path(name: str) -> str:
    """How modules name what an input of Dynamo's graph is; empty for another input.

    >>> path("L_self_modules_features_modules_0_parameters_weight_")
    'features.0.weight'
    """
    parts = _PART.split(name.rstrip("_"))
    return ".".join(parts[1:])


def needless(text: str, unneeded: Set[int]) -> tuple[float, float]:
    """The shares of a backward's products, and of its nodes, that only gradients of these need.

    ``unneeded``: places of the inputs among those of the forward, as the graph's text has them.
    """
    graph = read_graph(text)
    gradients = {name: int(place) for name, place in _GRADIENT.findall(text)}
    wanted = [name for name in graph.outputs if gradients.get(name) not in unneeded]
    live = set(wanted)
    for name in wanted:  # it grows
        more = [each for each in graph.nodes[name].inputs if each not in live]
        live.update(more)
        wanted += more
    work: list[tuple[str, int]] = []  # results, and the multiplications that each takes
    for node in graph.operations:
        sizes = [tensor_sizes(graph.nodes[name].meta) or () for name in node.inputs]
        if node.op in _PRODUCTS and all(sizes[-2:]):
            work.append((node.name, prod(sizes[-2]) * sizes[-1][-1]))
        elif node.op == _CONVOLUTION and all(sizes[:3]):
            # Of the gradient that comes in, the convolution's input and its weight.
            items = (graph.nodes[name] for name in graph.users[node.name])
            halves = (item.name for item in items if item.args.endswith(_HALVES))
            work += [(name, prod(sizes[0]) * prod(sizes[2][1:])) for name in halves]
    whole = sum(operations for _, operations in work)
    lost = sum(operations for name, operations in work if name not in live)
    nodes = [node.name for node in graph.operations if not node.is_view]
    return lost / (whole or 1), sum(name not in live for name in nodes) / (len(nodes) or 1)
