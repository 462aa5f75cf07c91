"""Which ranks waited while another rank compiled: tables ``rank_waits`` and ``job_waits``.

All ranks of a run are processes of one machine, so their clocks are one. A rank waits where a step
of its own takes longer than usual; one that made progress did not wait. Ranks that compile the same
code in the same step don't wait for each other, however long each of them takes (``rank_waits``).

Of a job's waits some are measured so. Of logs alone there is the gap between a rank's own compiles:
it compiled, logged nothing while another rank went on compiling, and compiled again as soon as that
one had finished. That is a sign and no proof (heuristic), and shows nothing of the wait for the
last compile of all. Ranks of several hosts have several clocks: a wait is only seen where they
agree.
"""

from __future__ import annotations

import statistics
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import pairwise
from operator import itemgetter

import polars as pl

from traceview.derive.intervals import Interval, merge, shared
from traceview.derive.job.attempts import Attempt, Row, Span, compile_columns
from traceview.derive.processes import main_processes, of_process
from traceview.tables import Tables, from_rows, grouped

Code = tuple[str | None, int | None, str | None]

#: A rank that is only slowed down, by the compile's own threads, still gets on.
_STILL = 0.8
_CACHES = ("fx_graph", "aotautograd")
#: A gap between compiles that is shorter says nothing.
LEAST_S = 1.0
#: How soon after the compile's end the other rank must go on: seconds, or a part of the gap.
_SOON_S, _SOON = 1.0, 0.1
#: Clocks of one host agree to less than this; so does when a collective ends on two ranks.
_BEFORE_S = 0.1
#: Part of the gap that the compile must fill.
_FILLS = 0.5
#: Compiles looked at for one gap, the last to end first.
_LOOKED_AT = 64


def rank_waits(tables: Tables) -> pl.DataFrame:
    """One row a compile that another rank waited for; none where there is one rank only."""
    # Compile key → how its look-ups in the caches of graphs ended.
    lookups: dict[str, set[str]] = defaultdict(set)
    events = tables["cache_events"].filter(pl.col("cache").is_in(_CACHES)).drop_nulls("compile_key")
    for key, event in events.select("compile_key", "event").iter_rows():
        lookups[key].add(event)
    rows = []
    for name in tables["runs"]["pass"].unique(maintain_order=True):
        ranks = [_Rank(tables, run) for run in main_processes(tables, name)]
        for rank in ranks if len(ranks) > 1 else ():
            for compile_ in rank.compiles:
                waits = (other.wait(rank, compile_, lookups) for other in ranks)
                known = [wait for wait in waits if wait is not None]
                rows += sorted(known, key=lambda wait: -wait["wait_ms"])[:1]
    return from_rows("rank_waits", rows)


class _Rank:
    """What one rank compiled, and how it got on."""

    def __init__(self, tables: Tables, run: Row) -> None:
        self.rank = run["rank"]
        compiles, steps, blocks = (
            of_process(tables[name], dict(run)) for name in ("compiles", "steps", "blocks")
        )
        known = compiles.drop_nulls(["started_us", "duration_us"])
        self.compiles = known.sort("started_us").to_dicts()
        self.spans = merge(map(_span, self.compiles))
        self.by_code = grouped(self.compiles, by=_code)
        self._edges = sorted(_edges(steps, blocks))
        self._usual_us = _usual_us(steps)

    def step_at(self, time_us: float) -> int | None:
        """The step that it was in; None before the first one."""
        return next((step for time, step in reversed(self._edges) if time <= time_us), None)

    def lost_us(self, span: Interval) -> float:
        """How much of ``span``, its own compiles aside, it waited.

        It waits in a step for as long as the step takes more than usual, its compiles aside.
        """
        lost = 0.0
        for (start, step), (end, following) in pairwise(self._edges):
            part = max(start, span[0]), min(end, span[1])
            inside = part[1] - part[0] - shared(part, self.spans)
            if inside > 0:
                own = shared((start, end), self.spans)
                excess = end - start - own - (following - step) * self._usual_us
                lost += min(inside, max(0.0, excess))
        return lost

    def wait(self, rank: _Rank, compile_: Row, lookups: Mapping[str, set[str]]) -> Row | None:
        """What it lost while ``rank`` did this compile; None where it did not wait."""
        if self is rank:
            return None
        step = rank.step_at(compile_["started_us"])
        # The same code that it compiled in the same step, or at the same time.
        same = [
            row
            for row in self.by_code.get(_code(compile_), ())
            if self.step_at(row["started_us"]) == step or shared(_span(row), [_span(compile_)])
        ]
        if same:  # it waited only if it found in a cache what this one had to compile
            own = lookups.get(compile_["compile_key"], set())
            others = [lookups.get(row["compile_key"], set()) for row in same]
            if "miss" not in own or any("hit" not in them or "miss" in them for them in others):
                return None
        start, end = span = _span(compile_)
        alone_us = end - start - shared(span, self.spans)
        lost_us = self.lost_us(span)
        if not lost_us or lost_us < _STILL * alone_us:
            return None
        return {
            **{key: compile_[key] for key in ("pass", "compile_key", "compile_id", "is_forward")},
            "rank": rank.rank,
            "step": step,
            "waiting_rank": self.rank,
            "started_us": compile_["started_us"],
            "compile_ms": alone_us / 1e3,
            "wait_ms": lost_us / 1e3,
            "found_in_cache": bool(same),
        }


def _code(row: Row) -> Code:
    return row["co_filename"], row["co_firstlineno"], row["co_name"]


def _span(row: Row) -> Interval:
    return int(row["started_us"]), int(row["started_us"] + row["duration_us"])


def _edges(steps: pl.DataFrame, blocks: pl.DataFrame) -> Iterator[tuple[int, int]]:
    """(time in µs, step that begins) wherever that is known."""
    for row in steps.drop_nulls(["started_us", "host_ms"]).iter_rows(named=True):
        yield int(row["started_us"]), row["step"]
        yield int(row["started_us"] + 1e3 * row["host_ms"]), row["step"] + 1
    for row in blocks.drop_nulls(["started_us", "host_ms"]).iter_rows(named=True):
        yield int(row["started_us"]), row["first_step"]
        yield int(row["started_us"] + 1e3 * row["host_ms"]), row["first_step"] + row["steps"]


def _usual_us(steps: pl.DataFrame) -> float:
    """Median time of a compiled step in which nothing was compiled; 0 where there is none."""
    quiet = steps.filter(pl.col("compiles_inside") == 0, pl.col("stance") == "compiled")
    found = quiet["host_ms"].drop_nulls().to_list()
    return 1e3 * statistics.median(found) if found else 0.0


def wait_rows(tables: Tables, job: Attempt) -> Iterator[Row]:
    """Measured waits where there are steps, else what the gaps between compiles show."""
    measured = tables["rank_waits"].filter(pl.col("pass") == job.name)
    spans = {span.key: span for span in reversed(job.spans)} if measured.height else {}
    for row in measured.iter_rows(named=True):
        span = spans.get((str(row["rank"]), row["compile_key"]))
        if span is not None and row["waiting_rank"] is not None:
            yield {
                **compile_columns(job, span),
                "waiting_member": str(row["waiting_rank"]),
                "started_us": row["started_us"],
                "seconds": row["wait_ms"] / 1e3,
                "basis": "measured",
            }
    # Where two ranks or more have steps, no measured wait means that there was none.
    steps = tables["steps"].filter(pl.col("pass") == job.name)
    if measured.height or steps["rank"].n_unique() > 1:
        return
    timed = [(span.interval, span) for span in job.spans if span.interval is not None]
    timed.sort(key=lambda item: item[0][1])
    ends = [end for (_, end), _ in timed]
    for member, intervals in job.intervals.items():
        for (_, start), (end, _) in pairwise(intervals):
            if end - start >= LEAST_S * 1e6:
                soon = max(_SOON_S * 1e6, _SOON * (end - start))
                first = bisect_left(ends, end - soon)
                last = bisect_right(ends, end + _BEFORE_S * 1e6)
                near = [span for _, span in timed[max(first, last - _LOOKED_AT) : last]]
                yield from _wait(job, member, (start, end), near)


def _wait(job: Attempt, member: str, gap: Interval, near: list[Span]) -> Iterator[Row]:
    """The wait for the rank that compiled most of the gap, of those that finished at its end.

    It has the name of the compile that filled most of it.
    """
    found: dict[str, int] = {}
    for name in dict.fromkeys(span.member for span in near if span.member != member):
        intervals = job.intervals[name]
        first = bisect_right(intervals, gap[0], key=itemgetter(1))
        last = bisect_left(intervals, gap[1], key=itemgetter(0))
        found[name] = shared(gap, intervals[first:last])
    other = max(found, key=lambda name: found[name], default=None)
    if other is None or found[other] < _FILLS * (gap[1] - gap[0]):
        return
    done = max(span.ended_us or 0.0 for span in near if span.member == other)
    compiled = [span for span in job.by_member[other] if span.interval is not None]
    longest = max(compiled, key=lambda span: shared(gap, [span.interval or gap]))
    starts = [max(start, gap[0]) for start, end in job.intervals[other] if end > gap[0]]
    yield {
        **compile_columns(job, longest),
        "waiting_member": member,
        "started_us": float(starts[0]),
        "seconds": found[other] / 1e6,
        "resumed_s": (gap[1] - done) / 1e6,
        "basis": "heuristic",
    }
