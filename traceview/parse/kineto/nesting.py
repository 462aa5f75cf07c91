"""Which host event lies in which, by time on the same thread, and what it inherits from there.

Nesting is strict but for rounding: an event may outlast the one around it by up to 1 µs. Marks of
steps do not take part, as a step may begin and end in the middle of an operator.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

import polars as pl

from traceview.compile_id import CompileId
from traceview.parse.kineto.categories import GRAPH_PREFIX, REGION_PREFIX

TOLERANCE_NS = 1000
OUR_STEP = re.compile(r"^traceview step (\d{1,18})$")
OTHER_STEP = re.compile(r"^ProfilerStep#(\d{1,18})$")
_OUR_REGION = re.compile(r"^traceview region (.+)$")
_AUTOGRAD = "autograd::engine::evaluate_function"
_BACKWARD = re.compile(r"Backward\d*$")


@dataclass(slots=True)
class Context:
    """Per row: indices of the row around it, and what holds for it."""

    parent: list[int | None] = field(default_factory=list)
    depth: list[int] = field(default_factory=list)
    cpu_op: list[int | None] = field(default_factory=list)
    region: list[str | None] = field(default_factory=list)
    graph_key: list[str | None] = field(default_factory=list)
    compile_id: list[str | None] = field(default_factory=list)


def nest(host: pl.DataFrame) -> pl.DataFrame:
    """``host``, sorted by start, with row numbers of parent and operator, depth, region and graph.

    ``cpu_op`` is the deepest operator around the row (annotations are none). Work on autograd's
    thread has the region and the compile of the forward operator with its sequence number.
    """
    host = host.sort("start_ns", "duration_ns", descending=[False, True], maintain_order=True)
    context = _nested(host)
    for row, forward in _forward_of(host, context).items():
        _inherit_from_forward(context, row, forward)
    _hand_down(context)
    columns = {
        "parent": pl.Int64, "depth": pl.Int32, "cpu_op": pl.Int64, "region": pl.String,
        "graph_key": pl.String, "compile_id": pl.String,
    }  # fmt: skip
    return host.with_row_index("row").with_columns(
        pl.col("row").cast(pl.Int64),
        *(pl.Series(name, getattr(context, name), dtype=dtype) for name, dtype in columns.items()),
    )


def _nested(host: pl.DataFrame) -> Context:
    found = Context()
    stacks: dict[str, list[tuple[int, int]]] = {}
    kinds = host["kind"].to_list()
    rows = host.select("name", "tid", "start_ns", "duration_ns").iter_rows()
    for row, (name, tid, start, duration) in enumerate(rows):
        end = start + duration
        stack = stacks.setdefault(tid, [])
        mark = _mark(name)
        if mark.is_step:
            _append(found, None, kinds)
            continue
        while stack and (stack[-1][1] <= start or end > stack[-1][1] + TOLERANCE_NS):
            stack.pop()
        parent = stack[-1][0] if stack else None
        _append(found, parent, kinds)
        found.region[row] = mark.region or found.region[row]
        found.graph_key[row] = mark.graph_key or found.graph_key[row]
        found.compile_id[row] = mark.compile_id or found.compile_id[row]
        if kinds[row] != "call":
            stack.append((row, end))
    return found


def _append(found: Context, parent: int | None, kinds: list[str]) -> None:
    """One more row, with all that its parent hands down."""
    found.parent.append(parent)
    found.depth.append(0 if parent is None else found.depth[parent] + 1)
    is_op = parent is not None and kinds[parent] == "cpu_op"
    found.cpu_op.append(parent if is_op or parent is None else found.cpu_op[parent])
    for values in (found.region, found.graph_key, found.compile_id):
        values.append(None if parent is None else values[parent])


def _forward_of(host: pl.DataFrame, found: Context) -> dict[int, int]:
    """Rows that run a backward, each with the row of the latest forward operator of its number."""
    latest: dict[int, int] = {}
    pairs: dict[int, int] = {}
    rows = host.select("name", "sequence", "forward_thread").iter_rows()
    for row, (name, sequence, forward_thread) in enumerate(rows):
        if sequence is None or sequence < 0:
            continue
        if forward_thread or name.startswith(_AUTOGRAD) or _BACKWARD.search(name):
            if sequence in latest:
                pairs[row] = latest[sequence]
        elif found.region[row] is not None or found.compile_id[row] is not None:
            latest[sequence] = row
        else:
            latest.pop(sequence, None)
    return pairs


def _inherit_from_forward(found: Context, row: int, forward: int) -> None:
    found.region[row] = found.region[row] or found.region[forward]
    found.compile_id[row] = found.compile_id[row] or found.compile_id[forward]


def _hand_down(found: Context) -> None:
    """Once more from parent to child: parents stand first."""
    for row, parent in enumerate(found.parent):
        if parent is not None:
            found.region[row] = found.region[row] or found.region[parent]
            found.compile_id[row] = found.compile_id[row] or found.compile_id[parent]


@dataclass(frozen=True, slots=True)
class _Mark:
    region: str | None = None
    graph_key: str | None = None
    compile_id: str | None = None
    is_step: bool = False


_NO_MARK = _Mark()


def _region_mark(name: str) -> _Mark:
    compile_id = CompileId.parse(name.removeprefix(REGION_PREFIX))
    return _Mark(compile_id=str(compile_id) if compile_id else None)


@lru_cache(maxsize=65536)
def _mark(name: str) -> _Mark:
    """What the name of an event says about the events in it."""
    if name.startswith(REGION_PREFIX):
        return _region_mark(name)
    if name.startswith(GRAPH_PREFIX):
        return _Mark(graph_key=name.removeprefix(GRAPH_PREFIX).removesuffix("##").strip())
    if match := _OUR_REGION.match(name):
        return _Mark(region=match[1])
    if OUR_STEP.match(name) or OTHER_STEP.match(name):
        return _Mark(is_step=True)
    return _NO_MARK
