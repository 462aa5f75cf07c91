"""The timeline of all ranks, and how long the job compiled in all."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator

from traceview.derive.intervals import Interval, length, merge
from traceview.derive.job.attempts import known, phases_of
from traceview.diagnosis.job.model import SPAN_KINDS, JobCompile, JobTimeline, Lane
from traceview.diagnosis.job.subject import (
    Subject,
    member_name,
)

#: What a report has room for: ranks, and spans on all of them.
MOST_LANES, MOST_SPANS = 1024, 12_000
#: The axis is drawn no finer than this.
_PIXELS = 600
_Kind = dict[str, list[Interval]]


def compile_of(subject: Subject) -> JobCompile:
    """How long, where, and what others waited."""
    job = subject.job
    intervals = job.intervals
    every = merge(pair for pairs in intervals.values() for pair in pairs)
    timed = {member: job.seconds(member) for member in job.members}
    found = {member: value for member, value in timed.items() if value is not None}
    most = max(found, key=lambda member: found[member], default=None)
    alone = {member: length(pairs) / 1e6 for member, pairs in alone_times(subject).items()}
    waits = subject.frame("job_waits")
    spans = waits.select("started_us", "seconds").drop_nulls().iter_rows()
    waited = [(int(start), int(start + 1e6 * spent)) for start, spent in spans]
    return JobCompile(
        seconds=length(every) / 1e6 if every else None,
        rank_seconds=sum(found.values()) if found else None,
        median_seconds=statistics.median(found.values()) if found else None,
        most_seconds=found[most] if most is not None else None,
        most_rank=member_name(most) if most is not None else None,
        alone_seconds=alone.get(most, 0.0) if most is not None and every else None,
        ranks=len(job.members),
        ranks_compiling=len(job.by_member),
        compiles=sum(span.forward for span in job.spans),
        first_at_s=subject.at_s(every[0][0]) if every else None,
        last_at_s=subject.at_s(every[-1][1]) if every else None,
        waited_seconds=length(waited) / 1e6 if waited else None,
        waited_basis=waits["basis"][0] if waits.height else None,
        phases=phases_of(job.spans) if found else {},
    )


def alone_times(subject: Subject) -> _Kind:
    """Member → when it compiled and no other rank did; nothing where there is one rank only."""
    edges: list[tuple[int, int, str]] = []
    for member, pairs in subject.job.intervals.items():
        for start, end in pairs:
            edges += ((start, 1, member), (end, -1, member))
    found: _Kind = defaultdict(list)
    if len(subject.job.members) < 2:
        return found
    active: set[str] = set()
    before = 0
    for time, change, member in sorted(edges):
        if len(active) == 1 and time > before:
            found[next(iter(active))].append((before, time))
        (active.add if change > 0 else active.discard)(member)
        before = time
    return {name: merge(pairs) for name, pairs in found.items()}


def timeline(subject: Subject) -> JobTimeline:
    """One lane a rank; close spans of a kind are joined, so that all ranks have room."""
    job = subject.job
    ends = [end for pairs in job.intervals.values() for _, end in pairs]
    total_s = subject.at_s(max(ends, default=subject.zero_us)) or 0.0
    room = max(4, MOST_SPANS // max(1, len(job.members)))
    resolution = max(total_s / _PIXELS, 1.5 * total_s / room)
    kinds = _kinds(subject)
    lanes = [
        Lane(member_name(member), tuple(_spans(subject, kinds, member, resolution)))
        for member in job.members[:MOST_LANES]
    ]
    left = max(0, len(job.members) - MOST_LANES)
    return JobTimeline(total_s, resolution, SPAN_KINDS, tuple(lanes), left)


def _kinds(subject: Subject) -> list[_Kind]:
    """For each kind of span, member → intervals; a later kind lies over an earlier one."""
    waits: _Kind = defaultdict(list)
    for row in subject.frame("job_waits").drop_nulls(["started_us", "seconds"]).to_dicts():
        start = int(row["started_us"])
        waits[row["waiting_member"]].append((start, int(start + 1e6 * row["seconds"])))
    failed: _Kind = defaultdict(list)
    for member, spans in subject.job.by_member.items():
        failed[member] = merge(known([s for s in spans if s.row["outcome"] == "failed"]))
    return [subject.job.intervals, alone_times(subject), waits, failed]


def _spans(
    subject: Subject, kinds: list[_Kind], member: str, resolution: float
) -> Iterator[tuple[float, float, int]]:
    zero = int(subject.zero_us or 0)
    for number, found in enumerate(kinds):
        joined = _joined(merge(found.get(member, ())), int(resolution * 1e6))
        for start, end in joined:
            yield round((start - zero) / 1e6, 3), round((end - start) / 1e6, 3), number


def _joined(intervals: list[Interval], least: int) -> list[Interval]:
    """Intervals whose gaps are at least so long."""
    found: list[Interval] = []
    for start, end in intervals:
        if found and start - found[-1][1] < least:
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found


def waits_by_rank(subject: Subject) -> tuple[dict[str, float], dict[str, float]]:
    """(member → seconds that it waited, member → seconds that others waited for it)."""
    waiting: dict[str, list[Interval]] = defaultdict(list)
    awaited: dict[str, list[Interval]] = defaultdict(list)
    for row in subject.frame("job_waits").drop_nulls(["started_us", "seconds"]).to_dicts():
        span = (int(row["started_us"]), int(row["started_us"] + 1e6 * row["seconds"]))
        waiting[row["waiting_member"]].append(span)
        awaited[row["member"]].append(span)
    return _lengths(waiting), _lengths(awaited)


def _lengths(found: _Kind) -> dict[str, float]:
    return {member: length(spans) / 1e6 for member, spans in found.items()}
