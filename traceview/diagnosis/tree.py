"""Findings in order of what they cost, as a tree: a cause, and the symptoms that follow from it.

Costs are compared in one clock: seconds over the whole job.

A rule names the rules whose findings may be the cause of its own (``FOLLOWS``); a finding goes
under such a cause where both are about the same function. The figures of a cause and of its
symptoms overlap (the seconds of a recompile limit hold those of the recompiles that led to it), so
a tree costs the largest of them in each unit, not their sum. Where a symptom may follow from
several causes, what the others cost by themselves is taken off before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal

from msgspec.structs import replace

from traceview.rules.finding import SEVERITIES, Cost, Finding
from traceview.tables import Tables
from traceview.words.numbers import plural

Follows = Mapping[str, Collection[str]]

#: The job's length is given, or this many steps were seen as the least, or it is assumed.
Known = Literal["given", "seen", "assumed"]
#: Steps that a job is taken to have at least where its length is not known.
ASSUMED_STEPS = 1000
WHOLE = "with what follows from it: its largest figure, since they overlap"


def job_steps(tables: Tables) -> tuple[int, Known]:
    """(steps of the job, how that is known)."""
    known = [value for value in tables["speedups"]["job_steps"] if value]
    if known:
        return int(known[0]), "given"
    settings = dict(tables["settings"].select("name", "value").iter_rows())
    assumed = int(settings.get("assumed_steps") or ASSUMED_STEPS)
    seen = max((steps or 0 for steps in tables["runs"]["steps_seen"]), default=0)
    return (seen, "seen") if seen > assumed else (assumed, "assumed")


def order_note(steps: int, known: Known) -> str:
    """How the findings are ordered, and over how long a job."""
    length = plural(steps, "step")
    if known == "given":
        return f"Findings are ordered by their cost over the job's {length}, information last."
    why = "The job has at least this many" if known == "seen" else "That length is assumed"
    return (
        f"Findings are ordered by their cost over {length}, information last. {why}: pass the real "
        "number with --job-steps."
    )


def seconds_over_job(finding: Finding, steps: int) -> float:
    """What it costs a job of ``steps`` steps, with what follows from it; 0 where not known."""
    cost = finding.whole_cost or finding.cost
    return (cost.ms_per_step or 0.0) * steps / 1000.0 + (cost.seconds or 0.0)


def ordered(findings: Iterable[Finding], steps: int) -> tuple[Finding, ...]:
    """The most expensive first; at the same cost by severity, then by rule and place.

    A script's failure explains all else, so errors without a known cost come first. Information
    comes last, since its cost is no reason to do anything, except for what ``weighs``.
    """

    def key(finding: Finding) -> tuple[bool, bool, float, int, str, str, int]:
        cost = seconds_over_job(finding, steps)
        place = finding.location
        return (
            not (finding.severity == "error" and cost == 0.0),
            finding.severity == "info" and not finding.weighs,
            -cost,
            SEVERITIES.index(finding.severity),
            finding.code,
            place.file if place else "",
            place.line if place else 0,
        )

    return tuple(sorted(findings, key=key))


def tree(findings: Sequence[Finding], follows: Follows, steps: int) -> tuple[Finding, ...]:
    """The causes in order, each with its symptoms; ``follows``: rule → rules that it follows.

    Every finding is in it once. Of several causes, the most expensive over ``steps`` is taken.
    """
    fitting = [_causes(finding, findings, follows, steps) for finding in findings]
    parents = _parents(fitting)
    lines = [_line_of(index, parents) for index in range(len(findings))]
    grown = list(findings)
    for index in sorted(range(len(findings)), key=lambda index: -len(lines[index])):
        children = [child for child, cause in enumerate(parents) if cause == index]
        if not children:
            continue
        shared = [
            (
                grown[child].whole_cost or grown[child].cost,
                [findings[k].cost for k in fitting[child] if lines[k][-1] != lines[index][-1]],
            )
            for child in children
        ]
        grown[index] = replace(
            _with_symptoms(findings[index], [grown[child] for child in children], steps),
            whole_cost=_whole(findings[index].cost, shared),
        )
    return ordered((grown[i] for i, cause in enumerate(parents) if cause is None), steps)


def everyone(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Every finding of a tree, a cause before its symptoms."""
    for finding in findings:
        yield finding
        yield from everyone(finding.symptoms)


def _causes(
    finding: Finding, findings: Sequence[Finding], follows: Follows, steps: int
) -> tuple[int, ...]:
    """Indices of the findings that may be its cause, the best one first.

    The same line comes first, then what is about the same function, then the most expensive; of
    what is about the whole script a line says little. Information causes nothing that is more than
    information, unless it is about the same line.
    """
    rules = follows.get(finding.rule, ())

    def rank(index: int) -> tuple[bool, bool, float, int]:
        cause = findings[index]
        common = bool(cause.about & finding.about)
        here = bool(finding.about) and _same_line(cause, finding)
        return not here, not common, -seconds_over_job(cause, steps), index

    fit = (
        index
        for index, cause in enumerate(findings)
        if cause is not finding
        and cause.rule in rules
        and (not cause.about or not finding.about or cause.about & finding.about)
        and (cause.severity != "info" or finding.severity == "info" or _same_line(cause, finding))
    )
    return tuple(sorted(fit, key=rank))


def _same_line(cause: Finding, symptom: Finding) -> bool:
    lines = {(place.file, place.line) for place in (symptom.location, *symptom.also_at) if place}
    place = cause.location
    return place is not None and (place.file, place.line) in lines


def _parents(fitting: Sequence[Sequence[int]]) -> list[int | None]:
    """For each finding the best of its causes that does not follow from it in turn."""
    parents: list[int | None] = [None] * len(fitting)
    for index, causes in enumerate(fitting):
        parents[index] = next(
            (cause for cause in causes if index not in _line_of(cause, parents)), None
        )
    return parents


def _line_of(index: int, parents: Sequence[int | None]) -> list[int]:
    """``index``, its cause, the cause of that, and so on."""
    line: list[int] = []
    at: int | None = index
    while at is not None:
        line.append(at)
        at = parents[at]
    return line


def _with_symptoms(finding: Finding, symptoms: Sequence[Finding], steps: int) -> Finding:
    """``finding`` with what follows from it, as grave as the gravest of them."""
    grave = (finding.severity, *(symptom.severity for symptom in symptoms))
    return replace(
        finding,
        severity=min(grave, key=SEVERITIES.index),
        symptoms=ordered(symptoms, steps),
    )


def _whole(own: Cost, symptoms: Iterable[tuple[Cost, Sequence[Cost]]]) -> Cost:
    """The largest figure in each unit: its own, or a symptom's less what its other causes cost."""
    parts = [own, *(_less(cost, others) for cost, others in symptoms)]
    ms = [part.ms_per_step for part in parts if part.ms_per_step is not None]
    seconds = [part.seconds for part in parts if part.seconds is not None]
    return Cost(max(ms, default=None), max(seconds, default=None), WHOLE)


def _less(cost: Cost, others: Sequence[Cost]) -> Cost:
    ms, seconds = cost.ms_per_step, cost.seconds
    return Cost(
        None if ms is None else ms - sum(other.ms_per_step or 0.0 for other in others),
        None if seconds is None else seconds - sum(other.seconds or 0.0 for other in others),
    )
