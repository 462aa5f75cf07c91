"""Compiles past a job's start, and the idle time of its profiles that falls on compiles.

``late_compiles``: a compile's step is known where the collector or a profile (``ProfilerStep#n``)
recorded steps of its process. Without them, late is what begins after the first quiet time: a
stretch in which no rank compiled anything.

``idle_on_compile``: a trace's Unix time (``baseTimeNanoseconds``) and the compiler's (chromium
events) come from one clock on one host. A device that waits in a collective works on nothing: that
counts as idle.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise

import msgspec
import polars as pl

from traceview.derive.intervals import Interval, merge, union
from traceview.derive.job.attempts import Attempt, Row, Span, compile_columns, with_member
from traceview.tables import Tables
from traceview.torchtext.marks import PROFILER_STEP

#: On a CPU: marks, and spans that hold work and do none (the compiler's own are among them).
_NO_WORK = ("overhead", "mark", "other")
_COMMUNICATION = "communication"
#: From this step on a compile is late: warm-up, first shapes and the first evaluation lie before.
AFTER_STEP = 5
#: Seconds without a compile on any rank that end the start, where steps are not known.
QUIET_S = 10.0
#: Part of a step by which ranks may differ in when they begin the next one.
_EARLY = 0.1


class Trace(msgspec.Struct, frozen=True):
    """One trace; times are Unix time, ns.

    ``steps``: (begins, ends, number) as the profiler marked them. ``busy``: ``start``, ``end`` and
    the busy time ``before``, disjoint and in order.
    """

    member: str
    name: str
    window: Interval
    steps: list[tuple[int, int, int]]
    busy: pl.DataFrame
    on_device: bool

    def idle_ns(self, span: Interval) -> int:
        """Time of ``span`` inside the window in which nothing ran."""
        start, end = max(span[0], self.window[0]), min(span[1], self.window[1])
        return end - start - self._until(end) + self._until(start) if start < end else 0

    def _until(self, moment: int) -> int:
        """Busy time up to ``moment``."""
        at = int(self.busy["start"].search_sorted(moment, side="right")) - 1
        if at < 0:
            return 0
        start, end, before = self.busy.row(at)
        return int(before + min(moment, end) - start)


def traces(tables: Tables, job: Attempt) -> Iterator[Trace]:
    """Traces whose rank and Unix time are known, one a rank and stance: rows name no trace."""
    mine = tables["traces"].filter(pl.col("pass") == job.name).drop_nulls(["rank", "zero_ns"])
    alone = mine.filter(pl.len().over("rank", "stance") == 1)
    for row in alone.drop_nulls("span_ns").iter_rows(named=True):
        own = {"pass": job.name, "rank": row["rank"], "stance": row["stance"]}
        zero = row["zero_ns"]
        start = pl.col("start_ns") + zero
        ops, kernels = (
            tables[table].filter(**own).drop_nulls("start_ns") for table in ("cpu_ops", "kernels")
        )
        number = pl.col("name").str.extract(PROFILER_STEP, 1).cast(pl.Int64)
        marks = ops.select(start=start, end=start + pl.col("duration_ns"), step=number)
        if kernels.height:
            work = kernels.filter(pl.col("category") != _COMMUNICATION)
        else:
            work = ops.filter(~pl.col("category").is_in(_NO_WORK))
        spans = work.select(start=start, end=start + pl.col("duration_ns").fill_null(0))
        long = pl.col("end") - pl.col("start")
        yield Trace(
            member=str(row["rank"]),
            name=row["name"],
            window=(zero, zero + row["span_ns"]),
            steps=list(marks.drop_nulls("step").sort("start").iter_rows()),
            busy=union(spans).select("start", "end", before=long.cum_sum() - long),
            on_device=bool(kernels.height),
        )


def late_rows(tables: Tables, job: Attempt, traces: Sequence[Trace] = ()) -> Iterator[Row]:
    """One row a compile, in order of time."""
    # Steps that the collector saw.
    steps = tables["steps"].filter(pl.col("pass") == job.name).drop_nulls("started_us")
    edges: dict[str, list[tuple[float, int]]] = defaultdict(list)
    rows = with_member(steps).sort("started_us").select("member", "started_us", "step")
    for member, start, step in rows.iter_rows():
        edges[member].append((start, step))
    late_by = "steps"
    if not edges:
        edges, late_by = _profiled(job, traces), "profiler_steps"
    # Compile → the guard that decided that it was compiled again.
    deciding = tables["recompile_causes"].filter(pl.col("pass") == job.name)
    known = with_member(deciding).drop_nulls("compile_key")
    guards = known.select("member", "compile_key", "guard").iter_rows()
    reasons = {(member, key): guard for member, key, guard in guards}
    if edges:
        late: list[tuple[Span, int | None]] = []
        for span in job.spans:
            begun = edges.get(span.member, [])
            at = bisect_right(begun, (span.started_us or 0.0, 2**62))
            if span.started_us is not None and at and begun[at - 1][1] >= AFTER_STEP:
                late.append((span, begun[at - 1][1]))
        after: Row = {"late_by": late_by, "after_step": AFTER_STEP}
    else:
        # When the first compile after a quiet time began.
        together = merge(chain.from_iterable(job.intervals.values()))
        gaps = ((end, start) for (_, end), (start, _) in pairwise(together))
        late_from = (float(start) for end, start in gaps if start - end >= QUIET_S * 1e6)
        quiet = next(late_from, None)
        after_it = [s for s in job.spans if quiet and (s.started_us or 0.0) >= quiet]
        late = [(span, None) for span in after_it]
        after = {"late_by": "time", "after_us": quiet}
    for span, step in sorted(late, key=lambda item: item[0].started_us or 0.0):
        yield {
            **compile_columns(job, span),
            **after,
            "step": step,
            "started_us": span.started_us,
            "seconds": span.seconds,
            "reason": reasons.get(span.key),
        }


def _profiled(job: Attempt, traces: Sequence[Trace]) -> dict[str, list[tuple[float, int]]]:
    """Steps that a profile names, and that the one after its last goes on; before it none is known.

    Ranks without a profile are taken to be where the first rank with one is. They begin a step a
    little earlier or later, and compile where it begins: so a tenth of a step before counts to it.
    """
    edges: dict[str, list[tuple[float, int]]] = {}
    for trace in traces:
        if trace.steps:
            marks = [(start / 1e3, step) for start, _, step in trace.steps]
            _, end, last = trace.steps[-1]
            edges.setdefault(trace.member, [*marks, (end / 1e3, last + 1)])
    if not edges:
        return {}
    first = next(iter(edges.values()))
    early = [(at - _EARLY * (at - before), step) for (before, _), (at, step) in pairwise(first)]
    return {name: edges.get(name, [first[0], *early]) for name in job.members}


def idle_rows(job: Attempt, found: Iterable[Trace]) -> Iterator[Row]:
    """One row a trace."""
    for trace in found:
        own = _spans(job, (trace.member,))
        others = _spans(job, (name for name in job.members if name != trace.member))
        own_ns = sum(map(trace.idle_ns, own))
        both_ns = sum(map(trace.idle_ns, merge((*own, *others))))
        yield {
            "pass": job.name,
            "rank": int(trace.member),
            "member": trace.member,
            "file": trace.name,
            "window_s": (trace.window[1] - trace.window[0]) / 1e9,
            "idle_s": trace.idle_ns(trace.window) / 1e9,
            "own_compile_s": own_ns / 1e9,
            "other_compile_s": (both_ns - own_ns) / 1e9,
            "basis": "measured" if trace.on_device else "derived",
        }


def _spans(job: Attempt, members: Iterable[str]) -> list[Interval]:
    """When any of them compiled, ns."""
    found = (pair for name in members for pair in job.intervals.get(name, ()))
    return [(1000 * start, 1000 * end) for start, end in merge(found)]
