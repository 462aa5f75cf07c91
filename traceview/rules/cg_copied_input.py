"""
## What it finds
Inputs of a cudagraph that are copied in every call, as torch cannot know that they stay where they
are: large tensors that are passed as arguments, or read from attributes that are neither parameters
nor buffers.

## Why it costs
A cudagraph reads its inputs at the addresses of its recording. Parameters, buffers and what is
marked as static stay there; each other input gets memory of the graph's own, into which all of it
is copied before the graph runs, however little of it the kernels read. That takes time and as much
memory again.

## Evidence
In the profile of compiled steps, the copies by which `aten::_foreach_copy_` fills the inputs of a
cudagraph before it runs. They take at least 5 % of the step. Names are those of the inputs of
Dynamo's graph that have the sizes that are copied.

## What to do
Where it is the same tensor in each call: make it a buffer or parameter of the module that is
compiled, or call `torch._dynamo.mark_static_address(tensor)` once before the first call. Where it
is another one each time: write it into one tensor that is marked, where it is made, or compile this
function without cudagraphs.

## Settings
- `least_share`: part of the compiled step, 0 to 1, that the copies must take.

## References
- https://docs.pytorch.org/docs/stable/torch.compiler_cudagraph_trees.html
- torch/_inductor/cudagraph_trees.py, `_copy_inputs_and_remove_from_src`
- torch/_dynamo/decorators.py, `mark_static_address`
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import polars as pl

from traceview.derive.origins.work import listed
from traceview.rules._gain import compiled_rows, inputs_named
from traceview.rules._starts import NO_AUTOGRAD_CACHE
from traceview.rules.kit import (
    MOST_EVIDENCE,
    NOTABLE_SHARE,
    Cost,
    Evidence,
    Finding,
    Location,
    Owners,
    Snippet,
    Tables,
    about,
    compile_call,
    first_rank,
    milliseconds,
    percent,
    plural,
    region_of,
    rows,
    severity,
    size,
    step_ms,
)
from traceview.torchtext.fx import Node, read_graph

CODE = "TV516"
NEEDS = frozenset({"kernels", "cpu_ops", "compiles", "graphs"})
SEVERITIES = ("warning", "info")
EXPLAINS = frozenset({"copies_added"})
GPU_ONLY = True

#: Less of a step is hard to tell from noise.
LEAST_SHARE = NOTABLE_SHARE
#: An input that is less of what is copied than this is not named.
_LEAST_OF_ALL = 0.10
_COPYING = "aten::_foreach_copy_"
#: Of a tensor's annotation.
_SHAPE = re.compile(r"^[^\[\]]*\[([^\]]*)\]")
#: In Dynamo's names of what belongs to a module, and so stays where it is.
_STATIC = ("_parameters_", "_buffers_")


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """One finding for each compiled function."""
    step = step_ms(tables, "compiled")
    ops = compiled_rows(tables, "cpu_ops").filter(pl.col("step").is_not_null())
    if not step or ops.is_empty():
        return
    steps = ops["step"].n_unique()
    kernels = compiled_rows(tables, "kernels").drop_nulls("compile_id")
    replayed = set(kernels.filter("in_cudagraph")["compile_id"])
    copying = ops.filter(pl.col("compile_id").is_in(replayed), name=_COPYING)
    for (compile_id,), calls in copying.group_by("compile_id", maintain_order=True):
        inner = ops.join(calls.select(parent_id="op_id"), on="parent_id", how="semi")
        ids = pl.concat([calls.select("op_id"), inner.select("op_id")]).select(cpu_op_id="op_id")
        copies = kernels.join(ids, on="cpu_op_id", how="semi")
        ms = float(copies["duration_ns"].sum()) / 1e6 / steps
        if ms < least_share * step:
            continue
        yield _finding(tables, str(compile_id), calls["input_dims"][0], calls.height / steps, ms)


def _finding(
    tables: Tables, compile_id: str, dims: str | None, per_step: float, ms: float
) -> Finding:
    """``dims``: the sizes of what is copied; it takes ``ms`` of a step."""
    step, owners = step_ms(tables, "compiled") or ms, Owners(tables)
    compiles = first_rank(rows(tables, "compiles", compile_id=compile_id))[:1]
    inputs = _inputs(tables, compile_id, dims)
    places: dict[tuple[str, int], Location] = {}
    for row in compiles:
        call = compile_call(region_of(tables, row["compile_key"]))
        for place in filter(None, (call, owners.code(row).place, owners.caller(row))):
            places.setdefault((place.file, place.line), place)
    what = f"{inputs[0].name} is" if inputs else "An input is"
    if len(inputs) > 1:
        what = f"{inputs[0].name} and {plural(len(inputs) - 1, 'other input')} are"
    known = sum(each.bytes or 0 for each in inputs)
    arguments = [each.name for each in inputs if each.name.isidentifier()]
    copied = f"{per_step:.3g} per step, {milliseconds(ms)} on the device"
    return Finding(
        code=CODE,
        rule="cg-copied-input",
        severity=severity(tables, ms),
        title=(
            f"{what} copied into a cudagraph's own memory in every call: "
            f"{percent(min(1.0, ms / step))} of the step"
        ),
        explanation=(
            "A cudagraph reads its inputs at fixed addresses. Only parameters, buffers and tensors "
            "that are marked are known to stay where they are; all others are copied as a whole, "
            "whatever the kernels read of them."
        ),
        cost=Cost(ms, None, "device time of the copies, profiler window"),
        confidence="measured",
        location=next(iter(places.values()), None),
        also_at=tuple(places.values())[1:],
        about=about(*compiles),
        evidence=(
            Evidence(
                f"{_COPYING} before the cudagraph runs: {copied}"
                + (f", {size(known)} copied by each" if known else ""),
                "kernels",
            ),
            *(
                Evidence(f"input {each.name}, {each.shape}: {size(each.bytes)}", "graphs")
                for each in inputs
            ),
        )[:MOST_EVIDENCE],
        what_to_do=(
            "If it is the same tensor in every call, make it a buffer or parameter of the compiled "
            "module, or mark it once before the first call. If it is another one each time, "
            "compile this function without cudagraphs, unless these gain more than the copies take."
        ),
        snippet=Snippet(
            "python", "torch._dynamo.mark_static_address(tensor)  # once, before the first call"
        ),
        remedy=(f"static={'/'.join(arguments)}", NO_AUTOGRAD_CACHE) if arguments else (),
    )


class _Input(NamedTuple):
    name: str
    shape: str
    bytes: int | None


def _inputs(tables: Tables, compile_id: str, dims: str | None) -> list[_Input]:
    """The inputs of a compile that most of what is copied is in, largest first.

    ``dims`` are the sizes of what is copied, whose order is not Dynamo's. Where more inputs have
    a size than are copied, which of them is not known.
    """
    first = next(iter(listed(dims)), None)
    sizes = first if isinstance(first, list) else []
    # ``256,768`` → how many tensors of that size are copied
    copied = Counter(",".join(map(str, each)) for each in sizes if isinstance(each, list))
    found: list[_Input] = []
    for row in first_rank(rows(tables, "graphs", kind="dynamo_output", compile_id=compile_id))[-1:]:
        graph = read_graph(row["text"] or "")
        names = inputs_named(tables, row, graph)
        alike: dict[str, list[Node]] = {}
        for node in graph.inputs:
            shape = (match := _SHAPE.search(node.meta)) and match[1].replace(" ", "")
            if shape is not None and not any(part in node.name for part in _STATIC):
                alike.setdefault(shape, []).append(node)
        found += [
            _Input(names[node.name], f"{node.dtype} [{shape.replace(',', ', ')}]", node.bytes)
            for shape, nodes in alike.items()
            if len(nodes) <= copied[shape]
            for node in nodes
        ]
    whole = sum(each.bytes or 0 for each in found)
    found = [each for each in found if (each.bytes or 0) >= _LEAST_OF_ALL * whole]
    return sorted(found, key=lambda each: -(each.bytes or 0))
