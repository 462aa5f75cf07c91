"""A post-mortem in words: how long the job compiled, what matters first, and the notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import polars as pl
from msgspec.structs import replace

from traceview.derive.intervals import Interval
from traceview.diagnosis.job.model import Job, JobFailure, JobFrame, LateCompile
from traceview.diagnosis.job.subject import Subject, member_name
from traceview.diagnosis.job.troubles import where
from traceview.words.numbers import plural, seconds

#: A part of the job's compile seconds that is worth the sentence.
_WORTH = 0.2
#: A rank whose compiles are this far from all others has another clock, or is of another start.
_APART_S = 60.0


def worded(job: Job) -> Job:
    """``job`` with its headline, remarks and sentence."""
    headline = _figure(job)
    remarks = tuple(text for text in (_waited(job), _first(job)) if text)
    sentence = " ".join((headline, *remarks))
    return replace(job, headline=headline.rstrip("."), remarks=remarks, sentence=sentence)


def _figure(job: Job) -> str:
    spent = job.compile
    ranks = f"on {plural(spent.ranks, 'rank')}" if spent.ranks > 1 else ""
    if spent.seconds is None:
        if not spent.ranks_compiling:
            return f"No compile was recorded {ranks}".rstrip() + "."
        return f"Compilation {ranks}".rstrip() + "; how long was not recorded."
    head = " ".join(filter(None, (f"{seconds(spent.seconds)} of compilation", ranks)))
    starts = sum(one.job == job.attempt.job for one in job.attempts)
    if starts > 1:
        head = f"{head} (start {job.attempt.attempt} of {starts})"
    slow = job.stragglers[0] if job.stragglers else None
    if slow is not None and slow.rank == spent.most_rank:
        alone = spent.alone_seconds or 0.0
        if alone > _WORTH * spent.seconds:
            return f"{head}, {seconds(alone)} of it on {slow.rank} alone: {slow.why}."
        usual = seconds(slow.median_seconds)
        much = f"{seconds(slow.seconds)} where the median of the others is {usual}"
        return f"{head}; {slow.rank} took {much}: {slow.why}."
    return f"{head}."


def _waited(job: Job) -> str:
    waited, spent = job.compile.waited_seconds, job.compile.seconds
    if not waited or not spent or waited < _WORTH * spent or job.stragglers:
        return ""
    longest = job.waits[0]
    sure = "" if longest.basis == "measured" else ", as the gaps between their compiles suggest"
    return f"Ranks waited {seconds(waited)} for one another's compiles{sure}."


def _first(job: Job) -> str:
    """The gravest, else what makes up most of the seconds."""
    known = (_failure, _late, _recompiled, _limit, _earlier_failure, _apart, _slowest)
    return next((text for say in known if (text := say(job))), "")


def _failure(job: Job) -> str:
    failed = (one for one in job.failures if one.outcome == "failed" and one.attempt is None)
    return next(map(_failed, failed), "")


def _late(job: Job) -> str:
    late = job.late
    if late is None or late.rank_seconds <= _WORTH * (job.compile.rank_seconds or 0.0):
        return ""
    since = f"step {late.after_step}" if late.after_step is not None else "its start"
    return f"{seconds(late.seconds)} of it came after {since}, most in {_what(late.rows[0])}."


def _recompiled(job: Job) -> str:
    causes = [(cause, one) for one in job.frames for cause in one.causes]
    found = [(cause, one) for cause, one in causes if cause.kind == "recompiles"]
    if not found:
        return ""
    cause, frame = max(found, key=lambda item: item[0].seconds or 0.0)
    if (cause.seconds or 0.0) <= _WORTH * (job.compile.rank_seconds or 0.0):
        return ""
    return f"Most expensive: {_what(frame)}, {cause.text}."


def _limit(job: Job) -> str:
    limits = (one for one in job.failures if one.outcome == "limit" and one.attempt is None)
    one = next(limits, None)
    if one is None:
        return ""
    return f"{_what(one)} hit the recompile limit on {one.ranks.text}, and ran in eager after it."


def _earlier_failure(job: Job) -> str:
    before = [one for one in job.failures if one.attempt is not None]
    if not before:
        return ""
    failed = _failed(before[-1])
    return f"In start {before[-1].attempt}, {failed[:1].lower()}{failed[1:]}"


def _apart(job: Job) -> str:
    """Ranks that do not compile the same: the order of collectives, or an expensive function."""
    total = job.compile.rank_seconds or 0.0
    expensive = {
        (one.name, one.file, one.line) for one in job.frames if one.rank_seconds > _WORTH * total
    }
    for found in job.divergences:
        if found.kind == "collectives" or (found.name, found.file, found.line) in expensive:
            return f"Ranks diverge: {found.text}{where(found.file, found.line)}."
    return ""


def _slowest(job: Job) -> str:
    total = job.compile.rank_seconds
    if job.stragglers or not job.frames or not total:
        return ""
    share = f"{100 * job.frames[0].rank_seconds / total:.0f} % of the ranks' seconds"
    return f"Slowest to compile: {_what(job.frames[0])}, {share}."


def _what(found: JobFrame | JobFailure | LateCompile) -> str:
    """``forward() (model.py:26)``."""
    return f"{found.name}{where(found.file, found.line)}"


def _failed(found: JobFailure) -> str:
    who, kind = found.ranks.text, found.fail_type or "an error"
    return f"{who[:1].upper()}{who[1:]} failed to compile {_what(found)}: {kind}."


def notes(subject: Subject) -> Iterator[str]:
    """What the reader must know to trust the rest, the most important first."""
    yield from _missing(subject)
    yield from _clocks(subject)
    yield from _waiting(subject)
    yield from _unrecorded(subject)


def _missing(subject: Subject) -> Iterator[str]:
    """Ranks without a log: out of the world size, else at least out of the highest rank."""
    jobs = subject.tables["jobs"].filter(pl.col("pass") == subject.job.name)
    world_size = jobs["world_size"][0] if jobs.height else None
    ranks = [int(member) for member in subject.job.members if member.isdigit()]
    known, unnamed = len(ranks), len(subject.job.members) - len(ranks)
    size = max([*ranks, -1]) + 1 if world_size is None else world_size
    if known + unnamed < size:
        of = plural(size, "rank")
        whose = f"the job's {of}" if world_size is not None else f"at least {of} that the job had"
        yield f"There are logs of {known:,} of {whose}: the rest are missing from this report."
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
        f"Times are by each rank's own clock, and {whose}: if their clocks differ, the timeline "
        "and the waits are off by the difference. Nothing is corrected."
    )
    for member, apart in _time_apart(subject.job.intervals):
        if apart > _APART_S:
            yield (
                f"{member_name(member)} compiled {seconds(apart)} apart from all others: its clock "
                "differs, or its log is of another start."
            )


def _hosts(subject: Subject) -> int:
    """How many hosts the ranks ran on; 0 where it is not known of every rank."""
    known = subject.frame("inputs").drop_nulls("host")
    unknown = set(subject.job.members) - set(known["member"])
    return 0 if unknown else known["host"].n_unique()


def _time_apart(intervals: Mapping[str, Sequence[Interval]]) -> Iterator[tuple[str, float]]:
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
            "Whether ranks waited for one another's compiles is not recorded: without steps, logs "
            "show a wait only between two compiles of the rank that waits."
        )
    elif "heuristic" in set(waits["basis"]):
        yield (
            "Waits are inferred from gaps between a rank's own compiles that end when another "
            "rank's compile does. That is likely, not certain, and does not show a wait for the "
            "last compile of all."
        )


def _unrecorded(subject: Subject) -> Iterator[str]:
    tables = subject.tables
    if not tables.has("compiles") or not subject.job.spans:
        yield (
            "There is no structured log (TORCH_TRACE): compile times, caches and settings are not "
            "recorded."
        )
    elif all(span.seconds is None for span in subject.job.spans):
        yield "No compile time is recorded: the metrics of compiles are missing from the logs."
    open_ = sum(span.row["outcome"] == "unfinished" for span in subject.job.spans)
    if open_:
        yield (
            f"{plural(open_, 'compile')} never ended in the logs: a log was cut off, or the "
            "process was killed while compiling. That time is not in the figures."
        )
