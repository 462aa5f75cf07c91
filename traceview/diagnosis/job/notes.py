"""What the reader must know to trust the story."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from traceview.derive.intervals import Interval
from traceview.diagnosis.job.subject import Subject
from traceview.diagnosis.job.words import member_name, seconds
from traceview.words.numbers import plural

#: Logs of one start whose records do not overlap at all are told of from this distance on.
_APART_S = 60.0


def notes(subject: Subject) -> Iterator[str]:
    """Sentences, the gravest first."""
    yield from _missing(subject)
    yield from _clocks(subject)
    yield from _waiting(subject)
    yield from _unrecorded(subject)


def _missing(subject: Subject) -> Iterator[str]:
    """Ranks without a log: of how many a log tells, else of as many as the highest rank shows."""
    jobs = subject.tables["jobs"].filter(pl.col("pass") == subject.job.name)
    told = jobs["world_size"][0] if jobs.height else None
    ranks = [int(member) for member in subject.job.members if member.isdigit()]
    known, unnamed = len(ranks), len(subject.job.members) - len(ranks)
    size = max([*ranks, -1]) + 1 if told is None else told
    if known + unnamed < size:
        of = plural(size, "rank")
        whose = f"the job's {of}" if told is not None else f"at least {of} that the job had"
        yield f"There are logs of {known:,} of {whose}: the others are not told of."
    if unnamed and known:
        of = "1 process" if unnamed == 1 else f"{unnamed:,} processes"
        yield f"{of} logged no rank: shown by process id."


def _clocks(subject: Subject) -> Iterator[str]:
    """Whether moments of several ranks can be compared."""
    if len(subject.job.members) < 2:
        return
    hosts = _hosts(subject)
    if hosts == 1:
        return
    whose = f"the ranks ran on {hosts} hosts" if hosts else "the logs do not name the hosts"
    yield (
        f"Moments are by each rank's own clock, and {whose}: where clocks differ, the timeline and "
        "the waits are off by as much. Nothing is corrected."
    )
    for member, apart in _apart(subject.job.intervals):
        if apart > _APART_S:
            yield (
                f"{member_name(member)} compiled {seconds(apart)} apart from all others: its clock "
                "is another one, or it is of another start."
            )


def _hosts(subject: Subject) -> int:
    """How many hosts the ranks ran on; 0 where it is not known of every rank."""
    told = subject.frame("inputs").drop_nulls("host")
    unknown = set(subject.job.members) - set(told["member"])
    return 0 if unknown else told["host"].n_unique()


def _apart(intervals: Mapping[str, Sequence[Interval]]) -> Iterator[tuple[str, float]]:
    """(member, seconds between all of its compiles and all of the others')."""
    spans = {member: (pairs[0][0], pairs[-1][1]) for member, pairs in intervals.items() if pairs}
    if len(spans) < 2:
        return
    first, second = sorted(start for start, _ in spans.values())[:2]
    before, last = sorted(end for _, end in spans.values())[-2:]
    for member, (start, end) in spans.items():
        others_start = second if start == first else first
        others_end = before if end == last else last
        yield member, max(others_start - end, start - others_end) / 1e6


def _waiting(subject: Subject) -> Iterator[str]:
    waits = subject.frame("job_waits")
    if len(subject.job.members) < 2:
        return
    if waits.is_empty() and subject.frame("steps").is_empty():
        yield (
            "Whether ranks waited for one another's compiles is not recorded: logs without steps "
            "show a wait only between two compiles of the rank that waits."
        )
    elif "heuristic" in set(waits["basis"]):
        yield (
            "Waits are read from gaps between a rank's own compiles that another rank's compile "
            "fills and ends: a sign, no proof. A wait for the last compile of all is not seen."
        )


def _unrecorded(subject: Subject) -> Iterator[str]:
    tables = subject.tables
    if not tables.has("compiles") or not subject.job.spans:
        yield (
            "There is no structured log (TORCH_TRACE): compile times, caches and settings are not "
            "recorded."
        )
    elif all(span.seconds is None for span in subject.job.spans):
        yield "No compile says how long it took: its metrics are missing from the logs."
    open_ = sum(span.row["outcome"] == "unfinished" for span in subject.job.spans)
    if open_:
        yield (
            f"{plural(open_, 'compile')} never ended in the logs: a log was cut off, or the "
            "process was killed while it compiled. Their time is not in the figures."
        )
