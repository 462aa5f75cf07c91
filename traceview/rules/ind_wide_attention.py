"""
## What it finds
Attention that runs in float32 on a GPU, though its values or its result have 16 bits.

## Why it costs
FlashAttention and cuDNN's attention take bfloat16 and float16 only. In float32 another kernel runs,
which is several times slower and reads twice as many bytes. A norm of queries and keys that returns
float32 is enough: attention needs one dtype, so the values are cast to float32 as well.
`torch.compile` keeps the dtypes that the script asks for.

## Evidence
A call of `scaled_dot_product_attention` in Dynamo's graph with queries, keys and values in float32,
where the values are cast from 16 bits, or the result is used nowhere but in a cast to 16 bits; and
float32 kernels of attention in compiled steps. At the script's end attention of the step's own
sizes is timed in float32 and in bfloat16, forward only. The saving is that part of the attention
in a compiled step. A backward gains as well, and is not counted. Attention with a mask is not timed
this way, and not reported. Neither is anything where other attention in float32 has no such cast.

## What to do
Cast queries and keys back to 16 bits where they become float32, for example at the end of the norm.
The kernels add up in float32 all the same, but queries and keys are rounded: compare the results.
`traceview try` makes the casts in a copy and compares them.

## Settings
- `least_share`: part of the compiled step, 0 to 1, that the change must save.

## References
- https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html
- https://docs.pytorch.org/docs/stable/generated/torch.nn.attention.sdpa_kernel.html
- torch/nn/attention/__init__.py
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from traceview.rules._gain import Timed, locations
from traceview.rules.kit import (
    Evidence,
    Finding,
    Row,
    Snippet,
    Tables,
    first_rank,
    from_row,
    milliseconds,
    percent,
    plural,
    rows,
    severity,
    short,
    step_ms,
)
from traceview.torchtext.fx import ATTENTION, VIEW_WORDS, Graph, Node, read_graph

CODE = "TV445"
NEEDS = frozenset({"shape_gains", "graphs", "kernel_groups", "step_counts"})
SEVERITIES = ("warning", "info")
GPU_ONLY = True

#: A smaller gain is hard to tell from noise.
LEAST_SHARE = 0.05
_WIDE, _NARROW = "float32", ("bfloat16", "float16")
#: Queries, keys and values in its arguments.
_OPERANDS = re.compile(r"\((?:query\s*=\s*)?(\w+), (?:key\s*=\s*)?(\w+), (?:value\s*=\s*)?(\w+)")
_CASTS = ("to", "type_as")
#: What gives the same numbers; items and other names have no word.
_SAME = VIEW_WORDS | {None, "clone", "contiguous"}
#: The library's kernels of attention in float32: forward, backward.
_FORWARD, _BACKWARD = "fmha_cutlassF_f32", "fmha_cutlassB_f32"


class _Call(NamedTuple):
    """Attention in float32, in a row of ``graphs``.

    ``cast`` makes its values wide, or its result narrow again (then ``of_values`` is false);
    ``query`` makes the queries wide, as far as known.
    """

    graph: Row
    line: str | None
    cast: Node
    of_values: bool
    query: Node | None
    dtype: str | None

    @property
    def what(self) -> str:
        """``values are bfloat16``."""
        return f"{'values are' if self.of_values else 'result becomes'} {self.dtype}"


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """At most one finding: all such attention."""
    gains = first_rank(
        rows(tables, "shape_gains", kind="attention", dtype=_WIDE, way=_NARROW[0], clock="device")
    )
    groups = first_rank(rows(tables, "kernel_groups", stance="compiled", category="attention"))
    slow = [row for row in groups if row["name"].startswith(_FORWARD)]
    step, calls = step_ms(tables, "compiled"), _calls(tables) if gains and slow else []
    places = locations(call.line for call in calls)
    if not step or not places:
        return
    timed = Timed.of(tables, gains, sum(row["ms"] for row in slow))
    saved, call = timed.saved, calls[0]
    if saved < least_share * step:
        return
    made = locations([call.query.user_line] if call.query else [])
    measured = timed.said(f"in {_WIDE}", f"in {_NARROW[0]}")
    count = plural(sum(row["shapes"] for row in gains), "shape")
    kernel, ms = slow[0]["name"].partition("(")[0], milliseconds(slow[0]["ms"])
    explanation = (
        "FlashAttention and cuDNN's attention take bfloat16 and float16 only: another, slower "
        "kernel runs."
    )
    if made:
        explanation += f" The queries become {_WIDE} at {short(made[0])}."
    if any(row["name"].startswith(_BACKWARD) for row in groups):
        explanation += " The backward gains as well, which is not counted."
    also = dict.fromkeys([*locations([call.cast.user_line]), *made, *places])
    yield Finding(
        code=CODE,
        rule="ind-wide-attention",
        severity=severity(tables, saved),
        title=(
            f"Attention at {short(places[0])} runs in {_WIDE}, though its {call.what}: 16 bits "
            f"save {milliseconds(saved)}, {percent(saved / step)} of the step"
        ),
        explanation=explanation,
        cost=timed.cost("attention", measured),
        confidence="measured",
        location=places[0],
        evidence=(
            Evidence(f"attention of {count} per step: {measured}", "shape_gains"),
            Evidence(f"{kernel}: {ms} per step", "kernel_groups"),
            from_row(f"operands are {_WIDE}, {call.what}", "graphs", call.graph),
        ),
        what_to_do=(
            f"Cast queries and keys back where they become {_WIDE}. They are then rounded to 16 "
            "bits: compare the results."
        ),
        snippet=Snippet(
            "python",
            "q, k = q.to(v.dtype), k.to(v.dtype)"
            if call.of_values
            else f"q, k, v = (each.to(torch.{call.dtype}) for each in (q, k, v))",
        ),
        also_at=tuple(place for place in also if place != places[0])[:3],
    )


def _calls(tables: Tables) -> list[_Call]:
    """Attention in float32 that is about 16 bits; none where some is not."""
    found = []
    graphs: list[Row] = first_rank(rows(tables, "graphs", kind="dynamo_output"))
    for row in graphs:
        if ATTENTION not in (text := row["text"] or ""):
            continue
        graph = read_graph(text)
        for node in graph.operations:
            if ATTENTION not in node.target or node.dtype != _WIDE:
                continue
            given = _OPERANDS.match(node.args)
            operands = [name for name in given.groups() if name in graph.nodes] if given else []
            if [_dtype(graph, name) for name in operands] != [_WIDE] * 3:
                return []
            value = _widened(graph, operands[2], _SAME)
            cast = value or _narrowed(graph, node.name)
            if cast is None:
                return []
            dtype = _dtype(graph, cast.inputs[0] if value else cast.name)
            query = _widened(graph, operands[0])
            found.append(_Call(row, node.user_line, cast, value is not None, query, dtype))
    return found


def _dtype(graph: Graph, name: str) -> str | None:
    """The dtype of ``name``, or of what it is another name of."""
    node = graph.nodes[name]
    while not node.meta and not node.target and node.inputs:
        node = graph.nodes[node.inputs[0]]
    return node.dtype


def _widened(graph: Graph, name: str, through: frozenset[str | None] | None = None) -> Node | None:
    """The cast from 16 bits that ``name`` comes from by first operands, of such operators alone."""
    node = graph.nodes[name]
    while node.inputs:
        if node.word in _CASTS and _dtype(graph, node.inputs[0]) in _NARROW:
            return node
        if through is not None and node.word not in through:
            break
        node = graph.nodes[node.inputs[0]]
    return None


def _narrowed(graph: Graph, name: str) -> Node | None:
    """The first cast of ``name`` to 16 bits, where nothing else reads it or a view of it."""
    casts, names = [], [name]
    for each in names:  # grows while it is read: views of views
        if each in graph.outputs:
            return None
        for user in (graph.nodes[reader] for reader in graph.users.get(each, ())):
            if user.word in _CASTS and user.dtype in _NARROW:
                casts.append(user)
            elif user.word in _SAME:
                names.append(user.name)
            else:
                return None
    return casts[0] if casts else None
