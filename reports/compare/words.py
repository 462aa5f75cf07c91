"""The words, marks and figures that every form of a comparison shares."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from traceview.compare.model import (
    CausePair,
    Comparison,
    FigurePair,
    FramePair,
    MatchedPair,
    Place,
    Subject,
    ThingPair,
)
from traceview.reports import words
from traceview.words import names
from traceview.words import numbers as fmt

#: Outcome: (mark, word, the tone of report.css).
OUTCOMES = {
    "faster": ("▲", "Faster", "helped"),
    "slower": ("▼", "Slower", "hurt"),
    "no_difference_shown": ("=", "No difference shown", "neutral"),
    "other_conditions": ("?", "Other conditions", "not_measured"),
    "not_measured": ("○", "Steps not compared", "not_measured"),
    "failed": ("✕", "Failed", "failed"),
}
#: Change of a figure: (mark, word).
FIGURES = {
    "better": ("▲", "better"),
    "worse": ("▼", "worse"),
    "changed": ("≠", "changed"),
    "same": ("=", "same"),
    "within_noise": ("≈", "within noise"),
    "not_recorded": ("–", "not recorded"),
}
#: Change of a finding, frame or graph break: (mark, word).
THINGS = {
    "came": ("+", "came"),
    "went": ("−", "went"),
    "grew": ("↑", "grew"),
    "shrank": ("↓", "shrank"),
    "same": ("=", "same"),
    "unknown": ("?", "not comparable"),
}
#: Shown on a terminal whether or not they changed.
ALWAYS = ("speedup", "compiled_ms", "eager_ms", "compile_seconds")
T = TypeVar("T", bound=MatchedPair)


def value(pair: FigurePair, figure: float | None) -> str:
    """One side's figure in its unit."""
    return fmt.in_unit(figure, pair.unit)


def percent(pair: FigurePair) -> str:
    """The change in per cent, with its interval where there is one; empty where it says nothing."""
    if pair.ratio is None or pair.change in ("same", "not_recorded"):
        return ""
    said = f"{fmt.change(pair.ratio)} %"
    if pair.ratio_interval is None:
        return said
    low, high = (fmt.change(end) for end in pair.ratio_interval)
    return f"{said} ({low} to {high} %)"


def recorded(pairs: Iterable[FigurePair]) -> list[FigurePair]:
    """Figures that at least one run recorded."""
    return [pair for pair in pairs if pair.before is not None or pair.after is not None]


def weighty(pairs: Iterable[FigurePair]) -> list[FigurePair]:
    """Figures for a terminal: those that changed, and those that everyone asks for."""
    real = ("better", "worse", "changed")
    return [p for p in recorded(pairs) if p.change in real or p.key in ALWAYS]


def change(thing: MatchedPair) -> str:
    """``came``; ``grew, moved``; ``moved`` where nothing else happened to it."""
    word = THINGS[thing.change][1]
    if not thing.moved:
        return word
    return "moved" if thing.change == "same" else f"{word}, moved"


def mark(thing: MatchedPair) -> str:
    """The mark of its change."""
    return "→" if thing.change == "same" and thing.moved else THINGS[thing.change][0]


def marked(thing: MatchedPair) -> str:
    """The mark and the words of its change: ``+ came``."""
    return f"{mark(thing)} {change(thing)}"


def spot(place: Place | None) -> str:
    """``train.py:41 in step``; empty where no place is known."""
    if place is None:
        return ""
    where = place.file if place.line is None else names.at_line(place.file, place.line)
    return f"{where} in {place.function}" if place.function else where


def route(thing: MatchedPair) -> str:
    """Where it is, and where it was if that is elsewhere."""
    now, was = spot(thing.after), spot(thing.before)
    where = f"{now} (was {was})" if thing.moved else now or was
    return ", ".join(part for part in (where, on_ranks(thing)) if part)


def on_ranks(thing: MatchedPair) -> str:
    """``on 64 ranks``, ``on 64 → 1 ranks``; empty where only one rank is known."""
    if not isinstance(thing, ThingPair):
        return ""
    found = [count for count in (thing.before_ranks, thing.after_ranks) if count is not None]
    if not found:
        return ""
    said = " → ".join(f"{count:,}" for count in dict.fromkeys(found))
    return f"on {said} rank{'' if found[-1] == 1 and len(set(found)) == 1 else 's'}"


def costs(pair: CausePair) -> str:
    """What the finding costs in each run that has it: ``12 ms per step → 3 ms per step``."""
    known = [words.cost(cost) for cost in (pair.before_cost, pair.after_cost) if cost]
    if None in known or not known:
        return next((cost for cost in known if cost), "")
    return " → ".join(dict.fromkeys(str(cost) for cost in known))


def severity(pair: CausePair) -> str:
    """The finding's severity in B, else in A."""
    return pair.after_severity or pair.before_severity or "info"


def subject(one: Subject) -> str:
    """A run in a line: what it is, its script, torch and device, when."""
    torch = f"torch {one.torch_version}" if one.torch_version else None
    facts = (names.word(names.RUNS, one.kind), one.target, torch, one.device_name)
    return ", ".join(fact for fact in (*facts, words.when(one.created)) if fact)


def seconds(pair: FramePair) -> str:
    """Compile seconds of a frame in both runs."""
    return " → ".join(
        fmt.seconds(figure) if figure is not None else "none"
        for figure in (pair.before_seconds, pair.after_seconds)
    )


def phases(pair: FramePair) -> list[tuple[str, float | None, float | None]]:
    """Phase in words with its seconds in both runs."""
    known = dict.fromkeys((*pair.before_phases, *pair.after_phases))
    return [
        (names.phase(name), pair.before_phases.get(name), pair.after_phases.get(name))
        for name in known
    ]


def changed(things: Iterable[T]) -> list[T]:
    """Those to which anything happened."""
    return [thing for thing in things if thing.change != "same" or thing.moved]


def no_causes(comparison: Comparison) -> str:
    """What to say where no finding differs."""
    if not comparison.causes:
        return "Neither run has a finding."
    return "Every finding is in both runs, at the same place and of about the same cost."
