"""Findings of both runs: which appeared, disappeared, grew or shrank, and which only moved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from traceview.compare.figures import LEAST_S, NOISE, nothing_seen
from traceview.compare.files import Files
from traceview.compare.matching import Site, pairs
from traceview.compare.model import CausePair, Place, ThingChange
from traceview.compare.noise import Sides, beyond
from traceview.compare.side import Side
from traceview.diagnosis.model import Diagnosis
from traceview.rules.finding import SEVERITIES, Cost, Finding

#: A finding's cost has no interval: in ms it must change by this fraction of the step and amount.
LEAST_OF_STEP, LEAST_MS = 0.02, 0.001
#: The order in which changes are listed.
_CHANGES = ("came", "grew", "unknown", "went", "shrank", "same")

Line = tuple[Finding, Finding | None]


def causes(sides: Sides, files: Files) -> tuple[CausePair, ...]:
    """Every finding of either run: new ones first, then those that grew, went, shrank, stayed."""
    old, new = (list(lines(side.diagnosis.findings)) for side in (sides.before, sides.after))
    matched = pairs(
        [_site(sides.before, finding) for finding, _ in old],
        [_site(sides.after, finding) for finding, _ in new],
        files,
    )
    found = []
    for i, j, how in matched:
        before, cause = (None, None) if i is None else old[i]
        after, cause = (None, cause) if j is None else new[j]
        shown = after or before
        assert shown is not None
        change, why = _change(sides, before, after)
        was = sides.before.place_of(before) if before else None
        now = sides.after.place_of(after) if after else None
        pair = CausePair(
            rule=shown.rule,
            code=shown.code,
            title=shown.title,
            what_to_do=shown.what_to_do,
            before=was,
            after=now,
            before_severity=before.severity if before else None,
            after_severity=after.severity if after else None,
            before_cost=whole_cost(before) if before else None,
            after_cost=whole_cost(after) if after else None,
            change=change,
            moved=moved(files, was, now),
            matched_by=how,
            why=why,
            symptom_of=f"{cause.code} {cause.title}" if cause else None,
        )
        found.append(pair)

    def order(pair: CausePair) -> tuple[int, bool, int, float, str, str, int]:
        cost = pair.after_cost or pair.before_cost or Cost()
        place = pair.after or pair.before
        severity = SEVERITIES.index(pair.after_severity or pair.before_severity or "info")
        total = (cost.ms_per_step or 0.0) + (cost.seconds or 0.0)
        file, line = (place.file, place.line or 0) if place else ("", 0)
        symptom = pair.symptom_of is not None
        return _CHANGES.index(pair.change), symptom, severity, -total, pair.code, file, line

    return tuple(sorted(found, key=order))


def lines(findings: Sequence[Finding], cause: Finding | None = None) -> Iterator[Line]:
    """Every finding of a tree, with the cause at its root."""
    for finding in findings:
        yield finding, cause
        yield from lines(finding.symptoms, cause or finding)


def file_names(diagnosis: Diagnosis) -> Iterator[str]:
    """Every file that a finding names as its place."""
    for finding, _ in lines(diagnosis.findings):
        if finding.location:
            yield finding.location.file


def whole_cost(finding: Finding) -> Cost:
    """The finding's cost including its symptoms'."""
    return finding.whole_cost or finding.cost


def _site(side: Side, finding: Finding) -> Site:
    at = finding.location
    if at is None:
        return Site.of(side, finding.rule, None, None, None, finding.title)
    return Site.of(side, finding.rule, at.file, at.line, at.function, finding.title)


def moved(files: Files, before: Place | None, after: Place | None) -> bool:
    """Whether the same thing is now at another line, or in a file of another name."""
    if before is None or after is None:
        return False
    renamed = PurePosixPath(before.path).name != PurePosixPath(after.path).name
    other = files.partner.get(before.path) != after.path
    return before.line != after.line or renamed or other


def unseen(side: Side, rule: str) -> str | None:
    """Why ``side`` could not have a finding of ``rule``; None if it could."""
    d = side.diagnosis
    for row in d.not_checked:
        if row.rule == rule:
            return f"not checked, it needs {row.needs}"
    if rule in d.rules.left_out:
        return "this rule was not selected"
    if any(row.rule == rule for row in d.rules.silenced):
        return "a comment in the source silences this rule"
    return nothing_seen(side)


def _change(sides: Sides, before: Finding | None, after: Finding | None) -> tuple[ThingChange, str]:
    """Whether it appeared, disappeared, or its cost changed by more than noise; and why."""
    if before is None and after is not None:
        blind = unseen(sides.before, after.rule)
        return ("unknown", f"before: {blind}") if blind else ("came", "")
    if after is None and before is not None:
        blind = unseen(sides.after, before.rule)
        return ("unknown", f"after: {blind}") if blind else ("went", "")
    assert before is not None
    assert after is not None

    if machines := sides.other_machine:
        return "same", f"costs are not compared: {machines}"
    noise = sides.unrest(NOISE)
    step = sides.after.diagnosis.verdict.compiled_ms or 0.0
    least_ms = max(LEAST_MS, LEAST_OF_STEP * step)
    was, now = whole_cost(before), whole_cost(after)
    for old, new, least in (
        (was.ms_per_step, now.ms_per_step, least_ms),
        (was.seconds, now.seconds, LEAST_S),
    ):
        if old is not None and new is not None and beyond(old, new, noise, least):
            return ("grew" if new > old else "shrank"), f"differs by more than {noise * 100:.0f} %"
    return "same", f"two equal runs may differ by {noise * 100:.0f} %"
