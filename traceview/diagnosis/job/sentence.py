"""A post-mortem in words: how long the job compiled, what matters first, and the notes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import polars as pl
from msgspec.structs import replace

from traceview.diagnosis.job.model import Job, JobFailure, JobFrame, LateCompile
from traceview.diagnosis.job.subject import Subject, member_name, where
from traceview.words.numbers import plural, seconds

#: A part of the job's compile seconds that is worth the sentence.
_WORTH = 0.2
#: A rank whose compiles are this far from all others has another clock, or is of another start.
_APART_S = 60.0


def worded(job: Job) -> Job:
    """``job`` with its headline, remarks and sentence."""
    headline = _figure(job)
    waited, spent, remarks = job.compile.waited_seconds, job.compile.seconds, []
    if waited and spent and waited >= _WORTH * spent and not job.stragglers:
        measured = job.waits[0].basis == "measured"
        sure = "" if measured else ", as the gaps between their compiles suggest"
        remarks.append(f"Ranks waited {seconds(waited)} for one another's compiles{sure}.")
    remarks += islice(_matters(job), 1)
    sentence = " ".join((headline, *remarks))
    return replace(job, headline=headline.rstrip("."), remarks=tuple(remarks), sentence=sentence)


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


def _matters(job: Job) -> Iterator[str]:
    """What matters, the gravest first; then what makes up most of the seconds."""
    total, late = job.compile.rank_seconds or 0.0, job.late
    for failure in job.failures:
        if failure.outcome == "failed" and failure.attempt is None:
            yield _failed(failure)
    if late is not None and late.rank_seconds > _WORTH * total:
        since = f"step {late.after_step}" if late.after_step is not None else "its start"
        yield f"{seconds(late.seconds)} of it came after {since}, most in {_what(late.rows[0])}."
    causes = [(cause, one) for one in job.frames for cause in one.causes]
    found = [(cause, one) for cause, one in causes if cause.kind == "recompiles"]
    if found:
        cause, frame = max(found, key=lambda item: item[0].seconds or 0.0)
        if (cause.seconds or 0.0) > _WORTH * total:
            yield f"Most expensive: {_what(frame)}, {cause.text}."
    for failure in job.failures:
        if failure.outcome == "limit" and failure.attempt is None:
            ranks = failure.ranks.text
            yield f"{_what(failure)} hit the recompile limit on {ranks}, and ran in eager after it."
    for failure in reversed(job.failures):
        if failure.attempt is not None:
            failed = _failed(failure)
            yield f"In start {failure.attempt}, {failed[:1].lower()}{failed[1:]}"
    # Ranks that do not compile the same: the order of collectives, or an expensive function.
    frames = [frame for frame in job.frames if frame.rank_seconds > _WORTH * total]
    slow = {(frame.name, frame.file, frame.line) for frame in frames}
    for apart in job.divergences:
        if apart.kind == "collectives" or (apart.name, apart.file, apart.line) in slow:
            yield f"Ranks diverge: {apart.text}{where(apart.file, apart.line)}."
    if job.frames and total and not job.stragglers:
        share = f"{100 * job.frames[0].rank_seconds / total:.0f} % of the ranks' seconds"
        yield f"Slowest to compile: {_what(job.frames[0])}, {share}."


def _what(found: JobFrame | JobFailure | LateCompile) -> str:
    """``forward() (model.py:26)``."""
    return f"{found.name}{where(found.file, found.line)}"


def _failed(found: JobFailure) -> str:
    who, kind = found.ranks.text, found.fail_type or "an error"
    return f"{who[:1].upper()}{who[1:]} failed to compile {_what(found)}: {kind}."


def notes(subject: Subject) -> Iterator[str]:
    """What the reader must know to trust the rest, the most important first."""
    members, spans = subject.job.members, subject.job.spans
    # Ranks without a log: out of the world size, else at least out of the highest rank.
    jobs = subject.tables["jobs"].filter(pl.col("pass") == subject.job.name)
    world_size = jobs["world_size"][0] if jobs.height else None
    ranks = [int(member) for member in members if member.isdigit()]
    known, unnamed = len(ranks), len(members) - len(ranks)
    size = max([*ranks, -1]) + 1 if world_size is None else world_size
    if known + unnamed < size:
        of = plural(size, "rank")
        whose = f"the job's {of}" if world_size is not None else f"at least {of} that the job had"
        yield f"There are logs of {known:,} of {whose}: the rest are missing from this report."
    if unnamed and known:
        of = "1 process" if unnamed == 1 else f"{unnamed:,} processes"
        yield f"{of} logged no rank: shown by process id."
    if len(members) > 1:
        yield from _clocks(subject)
        waits = subject.frame("job_waits")
        if waits.is_empty() and subject.frame("steps").is_empty():
            yield (
                "Whether ranks waited for one another's compiles is not recorded: without steps, "
                "logs show a wait only between two compiles of the rank that waits."
            )
        elif "heuristic" in set(waits["basis"]):
            yield (
                "Waits are inferred from gaps between a rank's own compiles that end when another "
                "rank's compile does. That is likely, not certain, and does not show a wait for "
                "the last compile of all."
            )
    if not subject.tables.has("compiles") or not spans:
        yield (
            "There is no structured log (TORCH_TRACE): compile times, caches and settings are not "
            "recorded."
        )
    elif all(span.seconds is None for span in spans):
        yield "No compile time is recorded: the metrics of compiles are missing from the logs."
    open_ = sum(span.row["outcome"] == "unfinished" for span in spans)
    if open_:
        yield (
            f"{plural(open_, 'compile')} never ended in the logs: a log was cut off, or the "
            "process was killed while compiling. That time is not in the figures."
        )


def _clocks(subject: Subject) -> Iterator[str]:
    """Whether moments of several ranks can be compared."""
    named = subject.frame("inputs").drop_nulls("host")
    unknown = set(subject.job.members) - set(named["member"])
    hosts = 0 if unknown else named["host"].n_unique()
    if hosts == 1:
        return
    whose = f"the ranks ran on {hosts} hosts" if hosts else "the logs do not name the hosts"
    yield (
        f"Times are by each rank's own clock, and {whose}: if their clocks differ, the timeline "
        "and the waits are off by the difference. Nothing is corrected."
    )
    intervals = subject.job.intervals
    spans = {member: (pairs[0][0], pairs[-1][1]) for member, pairs in intervals.items() if pairs}
    if len(spans) < 2:
        return
    first, second, *_ = sorted(start for start, _ in spans.values())
    *_, before, last = sorted(end for _, end in spans.values())
    for member, (start, end) in spans.items():
        until = (second if start == first else first) - end
        since = start - (before if end == last else last)
        apart = max(until, since) / 1e6
        if apart > _APART_S:
            yield (
                f"{member_name(member)} compiled {seconds(apart)} apart from all others: its clock "
                "differs, or its log is of another start."
            )
