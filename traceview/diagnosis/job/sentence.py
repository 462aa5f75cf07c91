"""The verdict of a post-mortem: how long the job compiled, and the first thing that matters."""

from __future__ import annotations

from msgspec.structs import replace

from traceview.diagnosis.job.model import Job, JobFailure, JobFrame, LateCompile
from traceview.diagnosis.job.troubles import where
from traceview.diagnosis.job.words import seconds
from traceview.words.numbers import plural

#: A part of the job's compile seconds that is worth the sentence.
_WORTH = 0.2
_AGAIN = "recompiles"


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
    found = [(cause, one) for one in job.frames for cause in one.causes if cause.kind == _AGAIN]
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
    return f"In start {before[-1].attempt}, {_lower(_failed(before[-1]))}" if before else ""


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


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _failed(found: JobFailure) -> str:
    who, kind = found.ranks.text, found.fail_type or "an error"
    return f"{who[:1].upper()}{who[1:]} failed to compile {_what(found)}: {kind}."
