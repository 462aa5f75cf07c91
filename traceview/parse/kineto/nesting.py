"""Which host event lies in which, by time on the same thread, and what it inherits from there.

Nesting is strict but for rounding: an event may outlast the one around it by up to 1 µs. Marks of
steps do not take part, as a step may begin and end in the middle of an operator.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from math import inf
from typing import NamedTuple

import polars as pl

from traceview.compile_id import CompileId
from traceview.parse.kineto.categories import GRAPH_PREFIX, REGION_PREFIX
from traceview.parse.kineto.columns import Numbered

TOLERANCE_NS = 1000
OUR_STEP = re.compile(r"^traceview step (\d{1,18})$")
OTHER_STEP = re.compile(r"^ProfilerStep#(\d{1,18})$")
LINE = re.compile(r"^traceview line (\d{1,6}):(\d{1,9})$")
_OUR_REGION = re.compile(r"^traceview (?:call|region) (.+)$")
_AUTOGRAD = "autograd::engine::evaluate_function"
_BACKWARD = re.compile(r"Backward\d*$")


class Context(NamedTuple):
    """What holds for an event: our region, the compiled graph, the compile, and the user's line.

    ``line`` is as its mark has it: F:L.
    """

    region: str | None = None
    graph_key: str | None = None
    compile_id: str | None = None
    line: str | None = None

    def within(self, outer: Context) -> Context:
        """What holds where this is said inside of ``outer``."""
        return Context(*(mine or others for mine, others in zip(self, outer, strict=True)))


#: An event that later ones may lie in: its end, row and depth, the row of the deepest operator
#: (itself included), and its context.
_Open = tuple[float, "int | None", int, "int | None", Context]
_NOWHERE = Context()
_TOP: _Open = (inf, None, -1, None, _NOWHERE)


@dataclass(slots=True)
class _Nested:
    """Per row: the row around it, how many there are, the operator around it, its context."""

    parent: list[int | None] = field(default_factory=list)
    depth: list[int] = field(default_factory=list)
    cpu_op: list[int | None] = field(default_factory=list)
    context: list[Context] = field(default_factory=list)


def nest(host: pl.DataFrame) -> pl.DataFrame:
    """``host`` (in order of start) with rows of parent and operator, depth, region and graph.

    ``cpu_op`` is the deepest operator around the row (annotations are none). Work on autograd's
    thread has the region and the compile of the forward operator with its sequence number.
    """
    found = _nested(host)
    _hand_to_backward(host, found)
    numbered = Numbered()
    codes = pl.Series([numbered[context] for context in found.context], dtype=pl.UInt32)
    held = pl.DataFrame(
        list(numbered), schema=dict.fromkeys(Context._fields, pl.String), orient="row"
    )
    return host.with_columns(
        pl.Series("parent", found.parent, dtype=pl.Int64),
        pl.Series("depth", found.depth, dtype=pl.Int32),
        pl.Series("cpu_op", found.cpu_op, dtype=pl.Int64),
        *(held[name].gather(codes) for name in Context._fields),
    )


def _nested(host: pl.DataFrame) -> _Nested:
    found = _Nested()
    parents, depths, operators, contexts = found.parent, found.depth, found.cpu_op, found.context
    marks = {name: mark for name in host["name"].unique() if (mark := _mark(name)) != _NOWHERE}
    steps = {name for name in host["name"].unique() if is_step(name)}
    stacks: dict[str, list[_Open]] = {tid: [_TOP] for tid in host["tid"].unique()}
    rows = host.select("name", "kind", "tid", "start_ns", "duration_ns").iter_rows()
    for row, (name, kind, tid, start, duration) in enumerate(rows):
        end = start + duration
        stack = stacks[tid] if name not in steps else [_TOP]
        while stack[-1][0] <= start or end > stack[-1][0] + TOLERANCE_NS:
            stack.pop()
        _, parent, depth, operator, context = stack[-1]
        if name in marks:
            context = marks[name].within(context)
        parents.append(parent)
        depths.append(depth + 1)
        operators.append(operator)
        contexts.append(context)
        if kind != "call":
            stack.append((end, row, depth + 1, row if kind == "cpu_op" else operator, context))
    return found


def _hand_to_backward(host: pl.DataFrame, found: _Nested) -> None:
    """Gives what runs a backward, and what lies in it, the context of its forward."""
    pairs = _forward_of(host, found.context)
    if not pairs:
        return
    for row, parent in enumerate(found.parent):
        outer = pairs.get(row, parent)
        if outer is not None and found.context[row] is not found.context[outer]:
            found.context[row] = _with_forward(found.context[row], found.context[outer])


@lru_cache(maxsize=4096)
def _with_forward(own: Context, forward: Context) -> Context:
    """``own`` with the region and the compile of its forward; graph and line are its own."""
    return own._replace(
        region=own.region or forward.region, compile_id=own.compile_id or forward.compile_id
    )


def _forward_of(host: pl.DataFrame, contexts: list[Context]) -> dict[int, int]:
    """Rows that run a backward, each with the row of the latest forward operator of its number."""
    latest: dict[int, int] = {}
    pairs: dict[int, int] = {}
    numbered = host.select("name", "sequence", "forward_thread").with_row_index()
    rows = numbered.filter(pl.col("sequence") >= 0).iter_rows()
    for row, name, sequence, forward_thread in rows:
        if forward_thread or name.startswith(_AUTOGRAD) or _BACKWARD.search(name):
            if sequence in latest:
                pairs[row] = latest[sequence]
        elif contexts[row].region is not None or contexts[row].compile_id is not None:
            latest[sequence] = row
        else:
            latest.pop(sequence, None)
    return pairs


def is_step(name: str) -> bool:
    """Whether an event of this name marks a step."""
    return bool(OUR_STEP.match(name) or OTHER_STEP.match(name))


def _mark(name: str) -> Context:
    """What the name of an event says about the events in it."""
    if name.startswith(REGION_PREFIX):
        compile_id = CompileId.parse(name.removeprefix(REGION_PREFIX))
        return Context(compile_id=str(compile_id) if compile_id else None)
    if name.startswith(GRAPH_PREFIX):
        return Context(graph_key=name.removeprefix(GRAPH_PREFIX).removesuffix("##").strip())
    if line := LINE.match(name):
        return Context(line=f"{line[1]}:{line[2]}")
    match = _OUR_REGION.match(name)
    return Context(region=match[1] if match else None)
