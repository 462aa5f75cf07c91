"""Phrases about outputs, eager and compiled side by side."""

from __future__ import annotations

from traceview.diagnosis.model import ComparedOutputs, Diagnosis, OutputCheck
from traceview.words import numbers as fmt

_OUTCOMES = {
    "agree": "Yes.",
    "random": "With eager's random numbers, yes: compiled draws others from the same seed.",
    "rounding": "With eager's roundings, yes: compiled rounds elsewhere.",
    "differ": "No.",
}


def answer(one: ComparedOutputs) -> str:
    """The answer for one callable, and what it rests on."""
    if one.outcome not in _OUTCOMES:
        return f"Not compared: {one.why or fmt.MISSING}."
    said = f"{_OUTCOMES[one.outcome]} {_again(one)}".rstrip()
    if one.reference is None and one.reference_why:
        said += f" There is no run in float64 to compare with ({one.reference_why})."
    return said


def _again(one: ComparedOutputs) -> str:
    """Whether eager repeats itself."""
    again = [check for check in one.checks if check.run == "eager_again"]
    unlike = [check for check in again if check.max_abs_diff or check.differing or not check.same]
    if not again:
        return ""
    if not unlike:
        return "Run twice, eager gives the same bits."
    most = max((check.max_abs_diff or 0.0 for check in unlike), default=0.0)
    return f"Run twice, eager itself differs, by up to {tiny(most)}."


def rows(one: ComparedOutputs) -> list[OutputCheck]:
    """What the table shows: every run but eager's own repetition."""
    return [check for check in one.checks if check.run != "eager_again"]


def run(check: OutputCheck) -> str:
    """Which run a row is of."""
    names = {
        "compiled": "compiled",
        "fallback_random": "with eager's random numbers",
        "ladder": f'stage "{check.backend}"',
    }
    return names.get(check.run or "", check.run or fmt.MISSING)


def tiny(value: float | None) -> str:
    """Two significant digits at any size; a dash where it is not known."""
    return f"{value:.2g}" if fmt.given(value) else "–"


def within(check: OutputCheck) -> str:
    """``yes`` or ``no``, and the limit or the reason."""
    if check.same is None:
        return f"not run: {check.why or fmt.MISSING}"
    said = "yes" if check.same else "no"
    if check.why:
        return f"{said}: {check.why}"
    if check.differing:
        what = "NaN or infinite on one side" if check.max_abs_diff is not None else "differ"
        return f"{said}: {fmt.plural(check.differing, 'element')} {what}"
    return f"{said}, up to {tiny(check.limit)}" if fmt.given(check.limit) else said


def summary(diagnosis: Diagnosis) -> str | None:
    """One line: how many callables agree; None where nobody asked."""
    found = diagnosis.outputs
    if not found:
        return None
    groups = (
        ("agree", "like eager's"),
        ("random", "like eager's but for random numbers"),
        ("rounding", "like eager's but for roundings"),
        ("differ", "unlike eager's"),
        ("not_compared", "not compared"),
    )
    counts = [(sum(one.outcome == outcome for one in found), words) for outcome, words in groups]
    said = ", ".join(f"{count} {words}" for count, words in counts if count)
    return f"outputs of compiled callables: {said}"
