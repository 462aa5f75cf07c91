"""The timeline of all ranks, and how long the job compiled in all."""

from __future__ import annotations

import statistics
from collections import defaultdict

from traceview.derive.intervals import Interval, length, merge
from traceview.derive.job.attempts import known, phases_of
from traceview.diagnosis.job.model import SPAN_KINDS, JobCompile, JobTimeline, Lane
from traceview.diagnosis.job.subject import Subject, member_name

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
    waited = [span for _, _, span in subject.waits]
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
    waits: _Kind = defaultdict(list)
    for waiting, _, span in subject.waits:
        waits[waiting].append(span)
    failed = {
        member: list(known([span for span in spans if span.row["outcome"] == "failed"]))
        for member, spans in job.by_member.items()
    }
    # In the order of SPAN_KINDS: a later kind lies over an earlier one.
    kinds: tuple[_Kind, ...] = (job.intervals, alone_times(subject), waits, failed)
    zero = int(subject.zero_us or 0)
    lanes = []
    for member in job.members[:MOST_LANES]:
        spans = []
        for number, found in enumerate(kinds):
            joined: list[Interval] = []
            for start, end in merge(found.get(member, ())):
                if joined and start - joined[-1][1] < int(resolution * 1e6):
                    joined[-1] = (joined[-1][0], end)
                else:
                    joined.append((start, end))
            spans += [
                (round((start - zero) / 1e6, 3), round((end - start) / 1e6, 3), number)
                for start, end in joined
            ]
        lanes.append(Lane(member_name(member), tuple(spans)))
    left = max(0, len(job.members) - MOST_LANES)
    return JobTimeline(total_s, resolution, SPAN_KINDS, tuple(lanes), left)
