"""Table ``late_compiles``: what was compiled when the job was past its start.

A compile's step is known where the collector or a profile (``ProfilerStep#n``) recorded steps of
its process. Without them, late is what begins after the first quiet time: a stretch in which no
rank compiled anything.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, pairwise

import polars as pl

from traceview.derive.intervals import merge
from traceview.derive.job.members import with_member
from traceview.derive.job.ranks import code_columns
from traceview.derive.job.spans import Attempt, Row, Span
from traceview.derive.job.traces import Trace
from traceview.tables import Tables

#: From this step on a compile is late: warm-up, first shapes and the first evaluation lie before.
AFTER_STEP = 5
#: Seconds without a compile on any rank that end the start, where steps are not known.
QUIET_S = 10.0
#: Part of a step by which ranks may differ in when they begin the next one.
_EARLY = 0.1

#: Member → (begins at, µs; step), in order.
Edges = Mapping[str, list[tuple[float, int]]]


def late_rows(tables: Tables, job: Attempt, traces: Sequence[Trace] = ()) -> Iterator[Row]:
    """One row a compile, in order of time."""
    edges, late_by = _recorded(tables, job), "steps"
    if not edges:
        edges, late_by = _profiled(job, traces), "profiler_steps"
    reasons = _reasons(tables, job)
    if edges:
        found = ((span, _step(edges, span)) for span in job.spans)
        late: list[tuple[Span, int | None]] = [
            (span, step) for span, step in found if step is not None and step >= AFTER_STEP
        ]
        after: Row = {"late_by": late_by, "after_step": AFTER_STEP}
    else:
        quiet = _first_quiet(job)
        after_it = [s for s in job.spans if quiet and (s.started_us or 0.0) >= quiet]
        late = [(span, None) for span in after_it]
        after = {"late_by": "time", "after_us": quiet}
    for span, step in sorted(late, key=lambda item: item[0].started_us or 0.0):
        yield {
            "pass": job.name,
            "rank": span.row["rank"],
            "compile_key": span.row["compile_key"],
            "compile_id": span.row["compile_id"],
            "member": span.member,
            **code_columns(span.code),
            **after,
            "step": step,
            "started_us": span.started_us,
            "seconds": span.seconds,
            "reason": reasons.get(span.key),
        }


def _recorded(tables: Tables, job: Attempt) -> Edges:
    """Steps that the collector saw."""
    steps = tables["steps"].filter(pl.col("pass") == job.name).drop_nulls("started_us")
    edges: dict[str, list[tuple[float, int]]] = defaultdict(list)
    rows = with_member(steps).sort("started_us").select("member", "started_us", "step")
    for member, start, step in rows.iter_rows():
        edges[member].append((start, step))
    return edges


def _profiled(job: Attempt, traces: Sequence[Trace]) -> Edges:
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


def _step(edges: Edges, span: Span) -> int | None:
    mine = edges.get(span.member, [])
    if span.started_us is None or not mine:
        return None
    at = bisect_right(mine, (span.started_us, 2**62))
    return mine[at - 1][1] if at else None


def _first_quiet(job: Attempt) -> float | None:
    """When the first compile after a quiet time began; None where there was none."""
    together = merge(chain.from_iterable(job.intervals.values()))
    for (_, end), (start, _) in pairwise(together):
        if start - end >= QUIET_S * 1e6:
            return float(start)
    return None


def _reasons(tables: Tables, job: Attempt) -> dict[tuple[str, str], str]:
    """Compile → the guard that decided that it was compiled again."""
    deciding = tables["recompiles"].filter(
        pl.col("pass") == job.name, pl.col("order").fill_null(0) == 0
    )
    rows = with_member(deciding).drop_nulls("compile_key")
    found = rows.select("member", "compile_key", "guard").iter_rows()
    return {(member, key): guard for member, key, guard in found}
