"""
## What it finds
`torch.func.jacrev` of a function with more outputs than inputs, in compiled code.

## Why it costs
Reverse mode goes back through the function once for each output: for 192 outputs it carries 192
gradients through every layer, though only 3 inputs are asked about. Forward mode, `jacfwd`, goes
through it once for each input instead. Both give the same Jacobian.

## Evidence
Dynamo's graph takes gradients of the function (`_autograd_grad`) for a basis of all outputs, and
has fewer inputs than that. The kernels that compute these gradients take that part of a compiled
step. The saving is what is left without the gradients that forward mode does not need: that part
times one less inputs by outputs.

## What to do
`torch.func.jacfwd` in place of `jacrev`. Where the function is scalar, `grad` is right; for a
Hessian, `jacfwd(jacrev(f))` takes the reverse mode inside, where there is one output.

## References
- https://docs.pytorch.org/docs/stable/generated/torch.func.jacfwd.html
- torch/_functorch/eager_transforms.py, `jacrev`
- https://github.com/pytorch/pytorch/issues/94395
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from traceview.rules._gain import at_first, paced, slowest_lines
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
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

CODE = "TV456"
NEEDS = frozenset({"graphs", "matched_kernels", "step_counts"})
SEVERITIES = ("warning", "info")

#: A tangent may cost more than a gradient.
_MOST_INPUTS = 0.5
_GRADIENTS = "_autograd_grad"


def check(tables: Tables) -> Iterator[Finding]:
    """One finding for each compiled graph with such a Jacobian."""
    step = step_ms(tables, "compiled")
    ran = first_rank(rows(tables, "matched_kernels", stance="compiled"))
    seen = set()
    for row in first_rank(rows(tables, "graphs", kind="dynamo_output")):
        if f".{_GRADIENTS}(" not in (row["text"] or "") or row["compile_id"] in seen or not step:
            continue
        seen.add(row["compile_id"])
        outputs, inputs, names = _jacobian(read_graph(row["text"]))
        mine = [
            each
            for each in ran
            if each["compile_id"] == row["compile_id"]
            and names.intersection(each["source_nodes"] or ())
        ]
        spent = sum(each["ms"] or 0.0 for each in mine)
        if not mine or inputs > _MOST_INPUTS * outputs:
            continue
        saved, pace = paced(tables, spent * (1 - inputs / outputs))
        places = slowest_lines(mine)
        yield Finding(
            code=CODE,
            rule="ind-reverse-jacobian",
            severity=severity(tables, saved),
            title=(
                f"A Jacobian{at_first(*places)} of {plural(outputs, 'output')} by "
                f"{plural(inputs, 'input')} is made in reverse mode: up to {milliseconds(saved)}, "
                f"{percent(saved / step)} of the step"
            ),
            explanation=(
                "Reverse mode carries a gradient of each output back through the function. Forward "
                "mode carries a tangent of each input, and there are fewer of these."
            ),
            cost=Cost(
                saved,
                None,
                f"of {milliseconds(spent)} for gradients of {outputs} outputs, as {inputs} of "
                f"{outputs} would take{pace}",
            ),
            confidence="derived",
            location=places[0] if places else None,
            evidence=(
                Evidence(f"{_GRADIENTS}: {outputs} outputs, {inputs} inputs", "graphs"),
                Evidence(f"{milliseconds(spent)} of a step computes these", "matched_kernels"),
            ),
            what_to_do="Write torch.func.jacfwd in place of jacrev: the Jacobian is the same.",
            also_at=tuple(places[1:4]),
            weighs=True,
        )


def _jacobian(graph: Graph) -> tuple[int, int, set[str]]:
    """Outputs and inputs of the largest Jacobian that ``graph`` makes in reverse mode, and nodes.

    A basis of all outputs is a square matrix, of which each row is one of a batch.
    """
    best, names = (0, 1), set()
    for node in graph.nodes.values():
        if not node.target.endswith(f".{_GRADIENTS}"):
            continue
        names.add(node.name)
        behind = [up for name in node.inputs for up in graph.nodes[name].inputs]
        sizes = [tensor_sizes(graph.nodes[name].meta) for name in behind]
        bases = [size[0] for size in sizes if size and size[0] == prod(size[1:])]
        results = (tensor_sizes(graph.nodes[name].meta) for name in graph.users[node.name])
        found = sum(prod(size) for size in results if size is not None)
        if bases and found:
            best = max(best, (max(bases), found))
    return *best, names
