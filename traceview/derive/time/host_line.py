"""What the host did at every moment of a window: stretches of one thread after another.

The line is that of the thread that runs the steps; while another thread that launches kernels has
an event open (autograd's, during a backward), it is that thread's. Marks of steps are no events.

``edges`` counts the events that begin at a stretch's end or end at its start: the profiler works
just before an event's first time stamp and just after its last one (``begin_op`` in
torch/csrc/profiler/collection.cpp, ``onFunctionExit`` in torch/csrc/autograd/profiler_kineto.cpp),
so that its cost lies around events and not in them. The collector's own mark of a region's call is
a range that Python opens and closes, and that no timed step has: it costs on both sides of both its
edges. So does that of a garbage collection, which callbacks open and close. And before the event of
a kernel that Inductor made by Triton stands what torch does for the profiler alone: the slow way to
the launch, and a record of it (``CachingAutotuner.run`` in torch/_inductor/runtime/
triton_heuristics.py).
"""

from __future__ import annotations

import polars as pl

from traceview.derive.intervals import Interval
from traceview.derive.windows import STEP_MARK, Window

_NOTHING = -1
#: What an edge of a region's mark costs on either side, in edges of operators: ``record_function``
#: took 11 µs where an operator's event took 1 to 2 (torch 2.13).
_REGION_EDGE = 4
#: What it does before a Triton kernel's event, in edges of operators. In seven scripts on an H100
#: and an H200 (torch 2.11, 18 to 210 such kernels a step) it took 4 to 8 times what an event of the
#: same script's eager steps took, which is two edges: 14 to 24 µs, in the middle 6 times.
_TRITON_EDGES = 12
_START, _END = pl.col("start_ns"), pl.col("start_ns") + pl.col("duration_ns")


def host_line(window: Window, span: Interval) -> pl.DataFrame:
    """Stretches that fill ``span`` in order.

    Columns ``start``, ``end`` (ns), ``tid``, ``op`` (op_id of the innermost event around it) with
    its ``name``, ``kind``, ``category`` and ``graph_key``, ``call`` (row of ``window.launches``: a
    CUDA call is under way), and ``edges``.
    """
    tids = _threads(window)
    edges = _edges(window, tids, span)
    line = edges.select(
        start="at",
        end=pl.col("at").shift(-1),
        edges=pl.col("over") + pl.col("begun").shift(-1),
        state=_open_event(tids),
    ).unnest("state")
    names = window.ops.select(pl.col("op_id").alias("op"), "name", "kind", "category", "graph_key")
    return _without_empty(line).join(names, on="op", how="left", maintain_order="left")


def _threads(window: Window) -> list[str]:
    """The steps' own thread, then the others that launch kernels."""
    main = window.main_tid or ""
    launching = window.launches.filter((pl.col("kernels") > 0) & pl.col("tid").is_not_null())
    return [main, *sorted(set(launching["tid"]) - {main})]


def _edges(window: Window, tids: list[str], span: Interval) -> pl.DataFrame:
    """Where events begin and end inside ``span``: what is open from there on (``op``, ``call``).

    A step's mark only cuts. At one moment ends stand before starts, inner ends before outer ones,
    outer starts before inner.
    """
    within = (pl.col("duration_ns") > 0) & _START.lt(span[1]) & _END.gt(span[0])
    within &= pl.col("tid").is_in(tids)
    events = window.ops.filter(within & ~pl.col("name").str.contains(STEP_MARK))
    events = _inside_parents(events)
    calls = window.launches.with_row_index("call").filter(within)
    kept, nothing = pl.lit(None, dtype=pl.Int64), pl.lit(_NOTHING, dtype=pl.Int64)
    outside = pl.DataFrame({"at": span, "tid": tids[0]}).with_columns(
        op=nothing, call=nothing, begun=0, over=0
    )
    region = pl.col("name").str.starts_with("traceview region ").cast(pl.Int32)
    collection = pl.col("name").str.starts_with("traceview gc ").cast(pl.Int32)
    one, both = 1 + region * (_REGION_EDGE - 1), region * _REGION_EDGE + collection
    launch = pl.col("kernel_file").is_not_null().cast(pl.Int32) * _TRITON_EDGES
    cuts = window.marks.select("tid", op=kept, call=kept, begun=0, over=0, first=_START, last=_END)
    parts = [
        outside,
        *(cuts.rename({edge: "at"}) for edge in ("first", "last")),
        calls.select("tid", at=_END, op=kept, call=nothing, begun=0, over=1),
        events.sort("op_id", descending=True).select(
            "tid",
            at="end",
            op=pl.col("parent_id").fill_null(_NOTHING),
            call=kept,
            begun=both,
            over=one,
        ),
        events.sort("op_id").select(
            "tid", at=_START, op="op_id", call=kept, begun=one + launch, over=both
        ),
        calls.select(
            "tid", at=_START, op=kept, call=pl.col("call").cast(pl.Int64), begun=1, over=0
        ),
    ]
    return pl.concat(
        part.select(pl.col("at").clip(*span), "tid", "op", "call", "begun", "over")
        for part in parts
    ).sort("at", maintain_order=True)


def _inside_parents(events: pl.DataFrame) -> pl.DataFrame:
    """``events`` with an ``end`` that is not after that of the event around."""
    ends = events.select("op_id", _END.alias("until"))
    joined = events.join(
        ends, left_on="parent_id", right_on="op_id", how="left", maintain_order="left"
    )
    return joined.with_columns(end=pl.min_horizontal(_END, "until")).drop("until")


def _open_event(tids: list[str]) -> pl.Expr:
    """The innermost event open after each edge: another thread's if one is, else the first's."""
    found = None
    for tid in tids:
        mine = pl.col("tid") == tid
        op, call = (
            pl.when(mine).then(pl.col(key)).forward_fill().fill_null(_NOTHING)
            for key in ("op", "call")
        )
        state = pl.struct(
            tid=pl.lit(tid),
            op=pl.when(op != _NOTHING).then(op),
            call=pl.when(call != _NOTHING).then(call),
        )
        busy = (op != _NOTHING) | (call != _NOTHING)
        found = state if found is None else pl.when(busy).then(state).otherwise(found)
    assert found is not None
    return found


def _without_empty(line: pl.DataFrame) -> pl.DataFrame:
    """``line`` less stretches of no length, whose edges go to the one before."""
    line = line.filter(pl.col("end").is_not_null())
    long = pl.col("end") > pl.col("start")
    line = line.with_columns(at=long.cum_sum())
    edges = line.group_by("at").agg(pl.col("edges").sum())
    kept = line.filter(long).drop("edges")
    return kept.join(edges, on="at", how="left", maintain_order="left").drop("at")
