"""A comparison in a few sentences: the step, the compiling, the causes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traceview.compare.model import CausePair, FigurePair, Outcome
from traceview.compare.noise import Sides
from traceview.words.numbers import milliseconds, plural

#: Where the eager step changed by nearly as much as the compiled one, compiling is not the reason.
SHARED = 0.5


def outcome(sides: Sides, figures: dict[str, FigurePair]) -> Outcome:
    """What became of a compiled step."""
    step, eager, speedup = (figures[key] for key in ("compiled_ms", "eager_ms", "speedup"))
    if sides.after.diagnosis.verdict.outcome == "failed" != sides.before.diagnosis.verdict.outcome:
        return "failed"
    if step.change == "not_recorded":
        return "not_measured"
    if step.change not in ("better", "worse"):
        return "no_difference_shown"
    if _also_eager(step, eager) and speedup.change not in ("better", "worse"):
        return "other_conditions"
    return "faster" if step.change == "better" else "slower"


def sentence(
    what: Outcome, sides: Sides, figures: dict[str, FigurePair], causes: Sequence[CausePair]
) -> str:
    """What a reader must know, in order of weight."""
    parts = [_of_step(what, sides, figures), *_of_compiling(figures), *_of_causes(causes)]
    return " ".join(part for part in parts if part)


def _also_eager(step: FigurePair, eager: FigurePair) -> bool:
    if eager.change != "changed" or not step.ratio or not eager.ratio:
        return False
    return abs(eager.ratio - 1) >= SHARED * abs(step.ratio - 1) and (
        (eager.ratio > 1) == (step.ratio > 1)
    )


def _of_step(what: Outcome, sides: Sides, figures: dict[str, FigurePair]) -> str:
    step, eager = figures["compiled_ms"], figures["eager_ms"]
    if what == "failed":
        return f"B failed, A did not: {sides.after.diagnosis.verdict.sentence}"
    if what == "not_measured":
        return "Steps can't be compared: no compiled step was timed in both runs."
    new, old = (milliseconds(ms or 0.0) for ms in (step.after, step.before))
    took = f"a compiled step takes {new} instead of {old} ({_percent(step)})"
    if what == "no_difference_shown":
        if step.ratio_interval is None:
            return f"No difference is claimed: {took}; {step.basis}."
        return f"No difference shown: {took}, within what two equal runs may differ by."
    if what == "other_conditions":
        both = f"so does an eager one ({_percent(eager)})"
        return f"Other conditions: {took}, but {both}. The machine or the work differs."
    return f"B is {what} than A: {took}."


def _percent(pair: FigurePair) -> str:
    """``−22 %, 95 % interval −25 to −18 %``."""
    if pair.ratio is None:
        return "no ratio"
    said = f"{_signed(pair.ratio)} %"
    if pair.ratio_interval is None:
        return said
    low, high = (_signed(end) for end in pair.ratio_interval)
    return f"{said}, 95 % interval {low} to {high} %"


def _signed(ratio: float) -> str:
    return f"{(ratio - 1) * 100:+.0f}".replace("-", "−").replace("+0", "0").replace("−0", "0")


def _of_compiling(figures: dict[str, FigurePair]) -> Iterator[str]:
    compile_ = figures["compile_seconds"]
    if compile_.change in ("better", "worse"):
        less = "less" if compile_.change == "better" else "more"
        yield f"Compiling takes {less}: {compile_.after:.1f} s instead of {compile_.before:.1f} s."
    for key, what in (
        ("graph_breaks", "Places of graph breaks"),
        ("recompiles", "Recompiles"),
        ("kernels_per_step", "Kernels a step"),
    ):
        pair = figures[key]
        if pair.change in ("better", "worse"):
            yield f"{what}: {pair.after:,.0f} instead of {pair.before:,.0f}."


def _of_causes(causes: Sequence[CausePair]) -> Iterator[str]:
    weighty = [c for c in causes if "info" not in (c.after_severity or c.before_severity or "")]
    counts = {
        change: sum(c.change == change for c in weighty)
        for change in ("came", "went", "grew", "shrank")
    }
    said = [f"{number} {change}" for change, number in counts.items() if number]
    if said:
        yield f"Of warnings and errors, {_list(said)}."
    elif weighty:
        yield f"The same {plural(len(weighty), 'finding')} (warnings and errors) in both."


def _list(words: Sequence[str]) -> str:
    return " and ".join(part for part in (", ".join(words[:-1]), words[-1]) if part)
