"""The outcome of a comparison, and the sentences and notes that state it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from traceview.compare.files import Files
from traceview.compare.model import CausePair, FigurePair, Outcome
from traceview.compare.noise import BY_DEVICE, Sides
from traceview.diagnosis.near import near
from traceview.words.numbers import change, in_unit, milliseconds, plural

#: If the eager step changed by this fraction of the compiled one's change, compiling is not why.
SHARED = 0.5


def outcome(sides: Sides, figures: dict[str, FigurePair]) -> Outcome:
    """How a compiled step changed."""
    step, eager, speedup = (figures[key] for key in ("compiled_ms", "eager_ms", "speedup"))
    if sides.after.diagnosis.verdict.outcome == "failed" != sides.before.diagnosis.verdict.outcome:
        return "failed"
    if step.change == "not_recorded":
        return "not_measured"
    if step.change not in ("better", "worse"):
        return "no_difference_shown"
    eager_too = (
        eager.change == "changed"
        and step.ratio
        and eager.ratio
        and abs(eager.ratio - 1) >= SHARED * abs(step.ratio - 1)
        and (eager.ratio > 1) == (step.ratio > 1)
    )
    if eager_too and speedup.change not in ("better", "worse"):
        return "other_conditions"
    return "faster" if step.change == "better" else "slower"


def sentences(
    what: Outcome, sides: Sides, figures: dict[str, FigurePair], causes: Sequence[CausePair]
) -> Iterator[str]:
    """The most important changes: the step (the headline), compiling, the findings."""
    yield from filter(None, _of_step(what, sides, figures))
    for key in ("compile_seconds", "graph_breaks", "recompiles", "kernels_per_step"):
        pair = figures[key]
        if pair.change in ("better", "worse"):
            new, old = (in_unit(value, pair.unit) for value in (pair.after, pair.before))
            yield f"{pair.label}: {new} instead of {old}."
    weighty = [c for c in causes if (c.after_severity or c.before_severity) != "info"]
    words = {"came": "new", "went": "gone", "grew": "more expensive", "shrank": "less expensive"}
    counts = {word: sum(c.change == key for c in weighty) for key, word in words.items()}
    changed = [f"{number} {word}" for word, number in counts.items() if number]
    if changed:
        yield f"Warnings and errors: {', '.join(changed)}."
    elif weighty:
        yield f"The same {plural(len(weighty), 'finding')} (warnings and errors) in both."


def notes(sides: Sides, files: Files) -> Iterator[str]:
    """What limits the figures."""
    before, after = sides.before.diagnosis, sides.after.diagnosis
    if before.pairs and after.pairs:
        allowed = sides.between_processes()
        bound = "device" if allowed == BY_DEVICE else "host"
        yield (
            f"Each run is one process. A {bound}-bound step of the same script varies by up to "
            f"{allowed * 100:.0f} % between processes, so no smaller change of a step is claimed."
        )
    unrest = sides.unrest(0.0)
    if unrest > 0.25:
        yield (
            f"The machine's speed varied by {unrest * 100:.0f} % between timed blocks, so no "
            "smaller change is claimed for times that were measured once."
        )
    for name, what in (("torch_version", "torch version"), ("device_name", "device")):
        values = [d.environment.get(name) for d in (before, after)]
        if None not in values and values[0] != values[1]:
            yield f"The {what} differs: {values[0]} in A, {values[1]} in B."
    for old, new in files.partner.items():
        if PurePosixPath(old).name != PurePosixPath(new).name:
            yield (
                f"{near(new, after)} of B is matched with {near(old, before)} of A: at least half "
                "of their lines are the same."
            )
    if before.traceview != after.traceview:
        yield (
            f"Made by traceview {before.traceview or '?'} and {after.traceview or '?'}: a finding "
            "may be new because its rule is."
        )


def _of_step(what: Outcome, sides: Sides, figures: dict[str, FigurePair]) -> Iterator[str]:
    step, eager = figures["compiled_ms"], figures["eager_ms"]
    new, old = (milliseconds(ms or 0.0) for ms in (step.after, step.before))
    took = f"a compiled step takes {new} instead of {old} ({_percent(step)})"
    match what:
        case "failed":
            yield "B failed and A did not."
            yield sides.after.diagnosis.verdict.sentence
        case "not_measured":
            yield "Steps can't be compared: no compiled step was timed in both runs."
        case "no_difference_shown" if step.ratio_interval is None:
            yield f"No difference is claimed: {took}; {step.basis}."
        case "no_difference_shown":
            yield f"No difference shown: {took}, which is within noise."
        case "other_conditions":
            both = f"an eager step changed as well ({_percent(eager)})"
            yield f"Other conditions: {took}, but {both}."
            yield "The machine or the work differs."
        case _:
            yield f"B is {what} than A: {took}."


def _percent(pair: FigurePair) -> str:
    """``−22 %, 95 % interval −25 to −18 %``."""
    if pair.ratio is None:
        return "no ratio"
    percent = f"{change(pair.ratio)} %"
    if pair.ratio_interval is None:
        return percent
    low, high = (change(end) for end in pair.ratio_interval)
    return f"{percent}, 95 % interval {low} to {high} %"
