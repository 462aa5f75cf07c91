"""What the host did at every moment of a window, and what each stretch of it is called.

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

Each stretch has a cause: what a device waits for, or what a host spends its step on. Most
collectives show no event while they wait, so a long stretch of nothing is the script's own Python
or a wait for a rank that compiles. Where it lies in another rank's compile, it counts as a wait.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import polars as pl

from traceview.derive import causes
from traceview.derive.intervals import Interval, covered_before, inside, union
from traceview.derive.time import host
from traceview.derive.windows import Window
from traceview.parse.kineto.categories import USER_KERNEL
from traceview.tables import Tables
from traceview.torchtext import marks

#: Marks in which all has one cause, the strongest first: (pattern, for a device, for a host).
_WHOLE = (
    (marks.starting(marks.OUR_WORK), causes.OWN, causes.OWN),
    (rf"{re.escape(marks.COMPILING)}$", causes.COMPILE, causes.HOST_COMPILE),
    (marks.starting(marks.OUR_GC), causes.GC, causes.HOST_GC),
    (marks.starting(marks.DATA_LOADER), causes.DATA_LOADING, causes.HOST_DATA_LOADING),
)
_OPTIMIZER = marks.starting(marks.OPTIMIZER)
#: What torch marks like a phase of compilation, and the calls that do it.
_MAKING = marks.starting(*marks.MAKING_CUDAGRAPHS)
_CALLS = marks.starting(marks.REGION, marks.BACKWARD)
#: cuDNN times an algorithm between two events and waits for the second one; a convolution whose
#: algorithm is known waits for nothing (aten/src/ATen/native/cudnn/Conv_v8.cpp, ``try_plans`` and
#: cudnn_frontend's ``time_sorted_plan``).
_SEARCHING, _TIMING, _TIMED_LEAST = "convolution", "EventSynchronize", 2
#: Calls that return when the device has done all of its work, apart from those that say so.
_HOLDING = ("cudaFree", "cudaFreeHost", "cudaHostAlloc", "cudaMemcpy", "cuMemFree")
_PYTHON = pl.col("call").is_null() & (pl.col("op").is_null() | (pl.col("category") == "mark"))
_GRAPH = pl.col("name").str.starts_with(marks.GRAPH).fill_null(False)
#: Where the user's code runs: a region goes on around the code of a graph break.
_PLAIN = _PYTHON | (pl.col("call").is_null() & pl.col("name").str.starts_with(marks.REGION))
#: Shorter stretches are no wait for a compile; of a longer one, compiles must fill this part.
_LEAST_NS, _FILLS = 10_000_000, 0.5
_ELSEWHERE = {
    causes.PYTHON: causes.HOST_COMPILE_ELSEWHERE,
    causes.OTHER_PYTHON: causes.COMPILE_ELSEWHERE,
}
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
    # The steps' own thread, then the others that launch kernels.
    main = window.main_tid or ""
    launching = window.launches.filter((pl.col("kernels") > 0) & pl.col("tid").is_not_null())
    tids = [main, *sorted(set(launching["tid"]) - {main})]
    # The innermost event open after each edge: another thread's if one is, else the first's.
    state = pl.lit(None)
    for tid in tids:
        mine = pl.col("tid") == tid
        op, call = (
            pl.when(mine).then(pl.col(key)).forward_fill().fill_null(_NOTHING)
            for key in ("op", "call")
        )
        there = pl.struct(
            tid=pl.lit(tid),
            op=pl.when(op != _NOTHING).then(op),
            call=pl.when(call != _NOTHING).then(call),
        )
        busy = (op != _NOTHING) | (call != _NOTHING)
        state = there if tid == main else pl.when(busy).then(there).otherwise(state)
    edges = _edges(window, tids, span)
    line = edges.select(
        start="at",
        end=pl.col("at").shift(-1),
        edges=pl.col("over") + pl.col("begun").shift(-1),
        state=state,
    ).unnest("state")
    # The edges of stretches of no length go to the one before.
    line = line.filter(pl.col("end").is_not_null())
    long = pl.col("end") > pl.col("start")
    line = line.with_columns(at=long.cum_sum())
    edges = line.group_by("at").agg(pl.col("edges").sum())
    kept = line.filter(long).drop("edges").join(edges, on="at", how="left", maintain_order="left")
    names = window.ops.select(pl.col("op_id").alias("op"), "name", "kind", "category", "graph_key")
    return kept.drop("at").join(names, on="op", how="left", maintain_order="left")


def _edges(window: Window, tids: list[str], span: Interval) -> pl.DataFrame:
    """Where events begin and end inside ``span``: what is open from there on (``op``, ``call``).

    A step's mark only cuts. At one moment ends stand before starts, inner ends before outer ones,
    outer starts before inner.
    """
    within = (pl.col("duration_ns") > 0) & _START.lt(span[1]) & _END.gt(span[0])
    within &= pl.col("tid").is_in(tids)
    needed = ("op_id", "parent_id", "tid", "name", "kernel_file", "start_ns", "duration_ns")
    named = ~pl.col("name").str.contains(marks.STEP)
    events = window.ops.select(needed).filter(within & named)
    # An event ends no later than the one around it.
    around = events.select("op_id", until=_END)
    events = events.join(
        around, left_on="parent_id", right_on="op_id", how="left", maintain_order="left"
    ).with_columns(end=pl.min_horizontal(_END, "until"))
    calls = window.launches.with_row_index("call").filter(within)
    kept, nothing = pl.lit(None, dtype=pl.Int64), pl.lit(_NOTHING, dtype=pl.Int64)
    outside = pl.DataFrame({"at": span, "tid": tids[0]}).with_columns(
        op=nothing, call=nothing, begun=0, over=0
    )
    region = pl.col("name").str.starts_with(marks.OUR_REGION).cast(pl.Int32)
    collection = pl.col("name").str.starts_with(marks.OUR_GC).cast(pl.Int32)
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


def device_causes(line: pl.DataFrame, window: Window) -> pl.DataFrame:
    """``line`` with ``cause``: a category of idle time if a device waits meanwhile.

    ``waits``: the host is held by a call until the device has done something. ``call_name``,
    ``call_kind``: of the CUDA call; ``copied``, ``copied_at``: what it copied as the device says.
    """
    ended = pl.col("start_ns") + pl.col("duration_ns")
    copies = window.kernels.filter(pl.col("kind") == "memcpy").unique("correlation")
    copies = copies.select("correlation", copied="name", copied_at=ended)
    calls = window.launches.with_row_index("call").select(
        pl.col("call").cast(pl.Int64), "correlation", call_name="name", call_kind="kind"
    )
    calls = calls.join(copies, on="correlation", how="left").drop("correlation")
    line = line.join(calls, on="call", how="left", maintain_order="left")
    line = line.with_columns(stretch=_PYTHON.rle_id())

    sync = pl.col("call_kind") == "sync"
    copied = pl.col("copied").str
    overhead = (pl.col("category") == "overhead") & ~_GRAPH
    length, long = pl.col("end") - pl.col("start"), causes.LONG_PYTHON_NS
    lasts = length.sum().over("stretch")
    # Convolutions whose algorithms are timed before one runs.
    timing = window.launches.filter(pl.col("name").str.contains(_TIMING)).sort("start_ns")
    named = pl.col("name").str.contains(_SEARCHING) & pl.col("kernel_file").is_null()
    timed = timing.select("tid", at="start_ns").join_asof(
        host.spans_of(window.ops.filter(named, kind="cpu_op")).sort("start"),
        left_on="at",
        right_on="start",
        by="tid",
        check_sortedness=False,
    )
    times = timed.filter(pl.col("at") < pl.col("end")).group_by("tid", "start", "end").len()
    searches = times.filter(pl.col("len") >= _TIMED_LEAST).drop("len")
    cases: tuple[tuple[Any, str], ...] = (
        *_whole(line, window, for_host=False),
        (pl.col("name") == marks.LOOKUP, causes.GUARDS),
        (_PLAIN & host.in_breaks(line, window), causes.GRAPH_BREAK),
        (_records(line, window), causes.RECORDING),
        (inside(line, searches), causes.SEARCH),
        (sync, causes.SYNC),
        (pl.col("call_kind") == "alloc", causes.ALLOCATOR),
        (copied.contains("Pageable -> Device"), causes.COPY_WAIT),
        (copied.contains("Device -> Pageable"), causes.SYNC),
        (overhead, causes.CALL_OVERHEAD),
        (pl.col("category") == "communication", causes.COMMUNICATION),
        (
            (pl.col("category") == USER_KERNEL) & pl.col("call").is_null() & (length > long),
            causes.CUSTOM_OP,
        ),
        (_PYTHON & (lasts > long), causes.OTHER_PYTHON),
    )
    held = sync | pl.col("call_name").is_in(_HOLDING)
    held |= copied.contains("Pageable") & (pl.col("copied_at") <= pl.col("end"))
    return line.with_columns(
        cause=first_case(cases).fill_null(causes.LAUNCH_BOUND), waits=held.fill_null(False)
    ).drop("stretch")


def _records(line: pl.DataFrame, window: Window) -> pl.Series:
    """Whether each stretch of ``line`` lies in a compiled call that makes a cudagraph.

    Not in another call inside it, which may replay one.
    """
    begun = window.ops.filter(pl.col("name").str.contains(_MAKING))
    calls = window.ops.filter(pl.col("name").str.contains(_CALLS)).sort("start_ns")
    if begun.is_empty() or calls.is_empty():
        return inside(line, host.spans_of(begun))
    spans = host.spans_of(calls).with_row_index("call")
    # the innermost call around each
    found = host.spans_of(begun).join_where(
        spans.rename({"tid": "thread", "start": "since", "end": "until"}),
        pl.col("start") >= pl.col("since"),
        pl.col("end") <= pl.col("until"),
        pl.col("tid") == pl.col("thread"),
    )
    making = set(found.sort("since").group_by("tid", "start").last()["call"])
    own = spans.filter(pl.col("call").is_in(making))
    rest = spans.filter(~pl.col("call").is_in(making) & inside(spans, own))
    return inside(line, own) & ~inside(line, rest)


def host_causes(line: pl.DataFrame, window: Window, *, graphs_hold_kernels: bool) -> pl.DataFrame:
    """``line`` with ``cause``: a category of the host's time.

    ``graphs_hold_kernels``: the generated kernels were not recorded separately
    (``enable_kernel_profile`` was off), so that their time is the generated wrapper's self time.
    """
    names = window.ops.filter(pl.col("category") == "overhead")["name"].unique().to_list()
    parts = {name: host.overhead_category(name) for name in names}
    part = pl.col("name").replace_strict(parts, default=None, return_dtype=pl.String)
    if graphs_hold_kernels:
        part = pl.when(_GRAPH).then(pl.lit("generated_other")).otherwise(part)
    cases: tuple[tuple[Any, pl.Expr | str], ...] = (
        *_whole(line, window, for_host=True),
        (_PLAIN & host.in_breaks(line, window), causes.HOST_GRAPH_BREAK),
        (pl.col("category") == "overhead", part),
        (_PYTHON & _in_marks(line, window, _OPTIMIZER), causes.HOST_OPTIMIZER),
        (_PYTHON, causes.PYTHON),
    )
    cause = pl.coalesce(first_case(cases), "category", pl.lit("other"))
    return line.with_columns(cause=cause, waits=False, call_name=pl.lit(None, dtype=pl.String))


def first_case(cases: Iterable[tuple[Any, pl.Expr | str]]) -> pl.Expr:
    """The value of the first case (a condition and a value) that holds; null where none does."""
    return pl.coalesce(
        *(
            pl.when(holds).then(pl.lit(value) if isinstance(value, str) else value)
            for holds, value in cases
        )
    )


def _whole(
    line: pl.DataFrame, window: Window, *, for_host: bool
) -> Iterator[tuple[pl.Expr | pl.Series, str]]:
    """Cases of what lies inside a mark, or outside of the steps that count."""
    if window.steps:
        # The collector's between the marks of steps, where it works, and in steps left out.
        steps = host.spans_of(window.marks).with_columns(tid=pl.lit(""))
        within = inside(line.select("start", tid=pl.lit("")), steps)
        # Ending the step's mark is the last that the collector does in a step.
        ours = pl.col("name").shift(1).str.contains(_WHOLE[0][0]).fill_null(False)
        short = pl.col("end") - pl.col("start") < causes.LONG_PYTHON_NS
        ending = pl.col("op").is_null() & ours & short & pl.col("end").is_in(steps["end"].implode())
        yield ending | ~within, causes.OWN
    for pattern, of_device, of_host in _WHOLE:
        yield _in_marks(line, window, pattern), of_host if for_host else of_device


def _in_marks(line: pl.DataFrame, window: Window, pattern: str) -> pl.Series:
    name = pl.col("name").str
    marks = window.ops.filter(name.contains(pattern) & ~name.contains(_MAKING))
    return inside(line, host.spans_of(marks))


def compiles_elsewhere(tables: Tables, window: Window) -> pl.DataFrame:
    """``start`` and ``end`` of other ranks' compiles, on the window's clock; disjoint, in order.

    Empty where the window's trace has no Unix time, or is one of several.
    """
    known = window.own(tables["traces"])["zero_ns"]
    zero = known[0] if known.len() == 1 and window.rank is not None else None
    compiles = tables["compiles"].filter(pl.col("pass") == window.pass_name)
    if zero is None:
        compiles = compiles.clear()
    others = compiles.filter(pl.col("rank") != pl.lit(window.rank, dtype=pl.Int32))
    start = (pl.col("started_us") * 1000).cast(pl.Int64) - pl.lit(zero, dtype=pl.Int64)
    length = (pl.col("duration_us") * 1000).cast(pl.Int64)
    return union(others.select(start=start, end=start + length).drop_nulls())


def with_compiles_elsewhere(line: pl.DataFrame, compiles: pl.DataFrame) -> pl.DataFrame:
    """``line`` with another cause where long Python lay in ``compiles``."""
    if compiles.is_empty():
        return line
    covered = covered_before(compiles, line["end"]) - covered_before(compiles, line["start"])
    length = pl.col("end") - pl.col("start")
    waits = (length >= _LEAST_NS) & (pl.lit(covered) >= _FILLS * length)
    cause = pl.col("cause").replace(_ELSEWHERE)
    return line.with_columns(cause=pl.when(waits).then(cause).otherwise("cause"))
