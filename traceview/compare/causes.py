"""Findings of both runs: which came, went, grew, shrank, and which only moved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from traceview.compare.figures import logged
from traceview.compare.files import Files
from traceview.compare.matching import Pair, Site, pairs
from traceview.compare.model import CausePair, Place, ThingChange
from traceview.compare.noise import Sides, beyond
from traceview.compare.side import Side
from traceview.diagnosis.model import Diagnosis
from traceview.diagnosis.order import SEVERITIES
from traceview.rules.finding import Cost, Finding

#: A finding's cost has no interval: below this part and amount it has not changed.
NOISE, LEAST_S, LEAST_OF_STEP, LEAST_MS = 0.25, 0.5, 0.02, 0.001

Line = tuple[Finding, Finding | None]


def causes(sides: Sides, files: Files) -> tuple[CausePair, ...]:
    """Every finding of either run, what came first, then what grew, went, shrank, stayed."""
    old, new = (list(lines(side.diagnosis.findings)) for side in (sides.before, sides.after))
    matched = pairs(
        [_site(sides.before, finding) for finding, _ in old],
        [_site(sides.after, finding) for finding, _ in new],
        files,
    )
    found = [_pair(sides, files, _at(old, one[0]), _at(new, one[1]), one) for one in matched]
    return tuple(sorted(found, key=_order))


def lines(findings: Sequence[Finding], cause: Finding | None = None) -> Iterator[Line]:
    """Every finding of a tree with the cause at its top."""
    for finding in findings:
        yield finding, cause
        yield from lines(finding.symptoms, cause or finding)


def file_names(diagnosis: Diagnosis) -> Iterator[str]:
    """Every file that a finding names as its place."""
    for finding, _ in lines(diagnosis.findings):
        if finding.location:
            yield finding.location.file


def whole_cost(finding: Finding) -> Cost:
    """What it costs with all that follows from it."""
    return finding.whole_cost or finding.cost


def _site(side: Side, finding: Finding) -> Site:
    at = finding.location
    if at is None:
        return Site.of(side, finding.rule, None, None, None, finding.title)
    return Site.of(side, finding.rule, at.file, at.line, at.function, finding.title)


def _at(found: Sequence[Line], index: int | None) -> Line | None:
    return None if index is None else found[index]


def _pair(sides: Sides, files: Files, old: Line | None, new: Line | None, pair: Pair) -> CausePair:
    before, after = old[0] if old else None, new[0] if new else None
    shown, cause = next(line for line in (new, old) if line)
    change, why = _change(sides, before, after)
    places = _place(sides.before, before), _place(sides.after, after)
    return CausePair(
        rule=shown.rule,
        code=shown.code,
        title=shown.title,
        what_to_do=shown.what_to_do,
        before=places[0],
        after=places[1],
        before_severity=before.severity if before else None,
        after_severity=after.severity if after else None,
        before_cost=whole_cost(before) if before else None,
        after_cost=whole_cost(after) if after else None,
        change=change,
        moved=moved(files, *places),
        matched_by=pair[2],
        why=why,
        symptom_of=f"{cause.code} {cause.title}" if cause else None,
    )


def _place(side: Side, finding: Finding | None) -> Place | None:
    at = finding.location if finding else None
    return side.place(at.file, at.line, at.function) if at else None


def moved(files: Files, before: Place | None, after: Place | None) -> bool:
    """Whether the same thing now stands at another line, or in a file of another name."""
    if before is None or after is None:
        return False
    renamed = PurePosixPath(before.path).name != PurePosixPath(after.path).name
    other = files.partner.get(before.path) != after.path
    return before.line != after.line or renamed or other


def _change(sides: Sides, before: Finding | None, after: Finding | None) -> tuple[ThingChange, str]:
    if before is None and after is not None:
        blind = _unseen(sides.before, after.rule)
        return ("unknown", f"before: {blind}") if blind else ("came", "")
    if after is None and before is not None:
        blind = _unseen(sides.after, before.rule)
        return ("unknown", f"after: {blind}") if blind else ("went", "")
    assert before is not None
    assert after is not None
    return _grown(sides, whole_cost(before), whole_cost(after))


def _unseen(side: Side, rule: str) -> str | None:
    """Why this run could not have had a finding of ``rule``; None if it could."""
    d = side.diagnosis
    for row in d.not_checked:
        if row.rule == rule:
            return f"not checked, it needs {row.needs}"
    if rule in d.rules.left_out:
        return "this rule was not asked for"
    if any(row.rule == rule for row in d.rules.silenced):
        return "a comment in the source silences this rule"
    if not logged(side) and d.verdict.outcome == "not_measured":
        return "no log was read and no step was timed"
    return None


def _grown(sides: Sides, before: Cost, after: Cost) -> tuple[ThingChange, str]:
    """By the seconds over the job or the milliseconds of a step, whichever differ beyond noise."""
    noise = sides.unrest(NOISE)
    step = sides.after.diagnosis.verdict.compiled_ms or 0.0
    least_ms = max(LEAST_MS, LEAST_OF_STEP * step)
    for old, new, least in (
        (before.ms_per_step, after.ms_per_step, least_ms),
        (before.seconds, after.seconds, LEAST_S),
    ):
        if old is not None and new is not None and beyond(old, new, noise, least):
            return ("grew" if new > old else "shrank"), f"differs by more than {noise * 100:.0f} %"
    return "same", f"two equal runs may differ by {noise * 100:.0f} %"


_CHANGES = ("came", "grew", "unknown", "went", "shrank", "same")


def _order(pair: CausePair) -> tuple[int, bool, int, float, str, str, int]:
    cost = pair.after_cost or pair.before_cost or Cost()
    place = pair.after or pair.before
    grave = SEVERITIES.index(pair.after_severity or pair.before_severity or "info")
    dear = (cost.ms_per_step or 0.0) + (cost.seconds or 0.0)
    file, line = (place.file, place.line or 0) if place else ("", 0)
    symptom = pair.symptom_of is not None
    return _CHANGES.index(pair.change), symptom, grave, -dear, pair.code, file, line
