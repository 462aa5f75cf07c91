"""Findings in order of what they cost, as a tree: a cause, and the symptoms that follow from it.

Costs are compared in one clock: seconds over the whole job.

A rule names the rules whose findings may be the cause of its own (``FOLLOWS``); a finding goes
under such a cause where both are about the same function. The figures of a cause and of its
symptoms overlap (the seconds of a recompile limit hold those of the recompiles that led to it), so
a tree costs the largest of them in each unit, not their sum. Where a symptom may follow from
several causes, what the others cost by themselves is taken off before.
"""

from __future__ import annotations

from collections import defaultdict
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
    # By the loops around the step, if those are known: the run may have been stopped in them.
    counts = *tables["runs"]["steps_seen"], *tables["job_lengths"]["steps"]
    seen = max((steps or 0 for steps in counts), default=0)
    return (seen, "seen") if seen > assumed else (assumed, "assumed")


def order_note(steps: int, known: Known) -> str:
    """How the findings are ordered, and over how long a job."""
    length = plural(steps, "step")
    if known == "given":
        return (
            "Findings: first what the verdict rests on, then by cost over the job's "
            f"{length}, information last."
        )
    why = "The job has at least this many" if known == "seen" else "That length is assumed"
    return (
        f"Findings: first what the verdict rests on, then by cost over {length}, information last. "
        f"{why}: pass the real number with --job-steps."
    )


def seconds_over_job(finding: Finding, steps: int) -> float:
    """What it costs a job of ``steps`` steps, with what follows from it; 0 where not known."""
    cost = finding.whole_cost or finding.cost
    return (cost.ms_per_step or 0.0) * steps / 1000.0 + (cost.seconds or 0.0)


def explains_all(finding: Finding) -> bool:
    """Whether no cost is as important: a script's failure, or a wrong result."""
    return finding.severity == "error" and seconds_over_job(finding, 1) == 0.0


def ordered(findings: Iterable[Finding], steps: int) -> tuple[Finding, ...]:
    """The most expensive first; at the same cost by severity, then by rule and place.

    A script's failure explains all else, so errors without a known cost come first. Information
    comes last, since its cost is no reason to do anything, except for what ``weighs``.
    """

    def key(finding: Finding) -> tuple[bool, bool, float, int, str, str, int]:
        cost = seconds_over_job(finding, steps)
        place = finding.location
        return (
            not explains_all(finding),
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
    causes = _causes(findings, follows, steps)
    parents: list[int | None] = [None] * len(findings)
    children: dict[int, list[int]] = defaultdict(list)
    for index, fit in enumerate(causes):  # the best cause that does not follow from it in turn
        best = next((cause for cause in fit if index not in _line_of(cause, parents)), None)
        parents[index] = best
        if best is not None:
            children[best].append(index)

    lines = [_line_of(index, parents) for index in range(len(findings))]
    grown = list(findings)
    for index in sorted(children, key=lambda index: -len(lines[index])):
        symptoms, own = [grown[child] for child in children[index]], findings[index]
        # The largest figure in each unit: its own, or a symptom's less what its other causes cost.
        ms, seconds = [own.cost.ms_per_step], [own.cost.seconds]
        for child, symptom in zip(children[index], symptoms, strict=True):
            whole, root = symptom.whole_cost or symptom.cost, lines[index][-1]
            others = [findings[k].cost for k in causes[child] if lines[k][-1] != root]
            ms.append(_less(whole.ms_per_step, (other.ms_per_step for other in others)))
            seconds.append(_less(whole.seconds, (other.seconds for other in others)))
        grown[index] = replace(
            own,
            severity=min((own.severity, *(s.severity for s in symptoms)), key=SEVERITIES.index),
            symptoms=ordered(symptoms, steps),
            whole_cost=Cost(
                max((figure for figure in ms if figure is not None), default=None),
                max((figure for figure in seconds if figure is not None), default=None),
                WHOLE,
            ),
        )
    return ordered((grown[i] for i, cause in enumerate(parents) if cause is None), steps)


def everyone(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Every finding of a tree, a cause before its symptoms."""
    for finding in findings:
        yield finding
        yield from everyone(finding.symptoms)


def _causes(findings: Sequence[Finding], follows: Follows, steps: int) -> list[list[int]]:
    """For each finding the indices of those that may be its cause, the best one first.

    The same line comes first, then what is about the same function, then what is proven by the same
    rows, then the most expensive; of what is about the whole script a line says little. Information
    causes nothing that is more than information, unless it is about the same line.
    """
    costs = [seconds_over_job(finding, steps) for finding in findings]
    of_rule: dict[str, list[int]] = defaultdict(list)
    about: dict[tuple[str, str | None], list[int]] = defaultdict(list)
    for index, finding in enumerate(findings):
        of_rule[finding.rule].append(index)
        for what in finding.about or (None,):
            about[finding.rule, what].append(index)

    def fitting(finding: Finding) -> list[int]:
        found: set[int] = set()
        for rule in follows.get(finding.rule, ()):
            if not finding.about:
                found.update(of_rule[rule])
            for what in (*finding.about, None):
                found.update(about[rule, what])
        places = (finding.location, *finding.also_at)
        lines = {(place.file, place.line) for place in places if place}

        def here(index: int) -> bool:
            place = findings[index].location
            return place is not None and (place.file, place.line) in lines

        def rank(index: int) -> tuple[bool, bool, bool, float, int]:
            cause = findings[index]
            apart = not (finding.about and here(index))
            proven = not set(finding.evidence).isdisjoint(cause.evidence)
            return apart, not cause.about & finding.about, not proven, -costs[index], index

        fit = (
            index
            for index in found
            if findings[index] is not finding
            and (findings[index].severity != "info" or finding.severity == "info" or here(index))
        )
        return sorted(fit, key=rank)

    return [fitting(finding) for finding in findings]


def _line_of(index: int, parents: Sequence[int | None]) -> list[int]:
    """``index``, its cause, the cause of that, and so on."""
    line: list[int] = []
    at: int | None = index
    while at is not None:
        line.append(at)
        at = parents[at]
    return line


def _less(figure: float | None, others: Iterable[float | None]) -> float | None:
    return None if figure is None else figure - sum(other or 0.0 for other in others)
