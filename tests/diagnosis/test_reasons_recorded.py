"""On every recorded run: what the verdict gives as reasons, and the findings that they name."""

import pytest
from recordings import NAMES, diagnosis_of

from traceview.diagnosis.tree import everyone, explains_all
from traceview.diagnosis.verdict import SMALL_PARTS
from traceview.words import names


@pytest.mark.parametrize("name", sorted(NAMES))
def test_reasons_add_up_and_their_findings_come_first(name):
    diagnosis = diagnosis_of(name)
    verdict = diagnosis.verdict

    # What made it fail, what kept code from being captured, half of the difference or more.
    reasons = {
        part.finding
        for part in verdict.why
        if part.ms is None
        or sum(p.share or 0 for p in verdict.why if p.finding == part.finding) >= 0.5
    }
    weighed = [found for found in diagnosis.findings if not explains_all(found)]
    named = [not reasons.isdisjoint(f.code for f in everyone((found,))) for found in weighed]
    assert named == sorted(named, reverse=True)

    parts = [part for part in verdict.why if part.ms is not None]
    if verdict.difference_ms is not None and parts:
        whole = sum(part.ms for part in parts) + verdict.unexplained_ms
        assert whole == pytest.approx(verdict.difference_ms)
    words = [(part.effect, names.effect(part.effect, part.ms, part.what)) for part in parts]
    assert len(words) == len(set(words)), "each part has a name of its own"
    of = verdict.eager_ms if verdict.outcome == "neutral" else verdict.difference_ms
    small = [part for part in parts if abs(part.ms) < 0.01 * abs(of or 0)]
    assert len([part for part in small if part.effect != SMALL_PARTS]) <= 1
    if verdict.outcome == "neutral":
        assert {part.share for part in parts} <= {None}
    if "all in eager it does not fail" in verdict.headline:
        assert verdict.why, "the finding that says what failed"
