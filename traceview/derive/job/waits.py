"""Table ``job_waits``: which ranks waited while another rank compiled.

Where steps were recorded, a step that takes longer than usual shows it (``rank_waits``: measured).
Of logs alone there is the gap between a rank's own compiles: it compiled, logged nothing while
another rank went on compiling, and compiled again as soon as that one had finished. That is a sign
and no proof (heuristic), and shows nothing of the wait for the last compile of all. Ranks of
several hosts have several clocks: a wait is only seen where they agree.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import pairwise
from operator import itemgetter

import polars as pl

from traceview.derive.intervals import Interval, shared
from traceview.derive.job.attempts import Attempt, Row, Span, compile_columns
from traceview.tables import Tables

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
