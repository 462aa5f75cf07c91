"""Compare two runs: what got slower or faster, and which causes are new, gone or changed.

Here two diagnoses become what changed from the first to the second, and sentences that state it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from traceview.compare import causes, compiler
from traceview.compare.figures import kinds, phases
from traceview.compare.files import Files
from traceview.compare.model import (
    CategoryPair,
    CausePair,
    Comparison,
    Difference,
    FigurePair,
    Outcome,
    to_json,
)
from traceview.compare.noise import BY_DEVICE, MACHINE, Sides
from traceview.compare.side import Side, cache_counts, value_text
from traceview.diagnosis.model import Diagnosis
from traceview.diagnosis.near import near
from traceview.words.numbers import change, in_unit, milliseconds, plural

__all__ = ["Comparison", "Side", "cache_counts", "compare", "to_json"]

#: Names of the facts of an environment by section, in the order of the report.
_FACTS = {
    "versions": [
        "torch_version",
        "triton_version",
        "cuda_version",
        "driver_version",
        "python_version",
    ],
    "machine": [*MACHINE, "device_count", "platform"],
    "run": ["argv", "rank", "ranks", "step_kind"],
}
#: If the eager step changed by this fraction of the compiled one's change, compiling is not why.
SHARED = 0.5


def compare(before: Side, after: Side) -> Comparison:
    """The comparison of two runs; a figure that one of them lacks is reported as not recorded."""
    sides = Sides(before, after)
    named = [
        [*causes.file_names(side.diagnosis), *compiler.file_names(side)] for side in (before, after)
    ]
    files = Files(before, after, *named)
    figures = tuple(sides.pair(kind) for kind in kinds())
    by_key = {pair.key: pair for pair in figures}
    found = causes.causes(sides, files)
    what = outcome(sides, by_key)
    said = tuple(sentences(what, sides, by_key, found))
    # Where the time of a compiled step goes, the largest difference first.
    old, new = (
        {row.category: row for row in d.accounting.get("compiled", ())}
        for d in (before.diagnosis, after.diagnosis)
    )
    pairs = [
        CategoryPair(
            name,
            (new.get(name) or old[name]).kind,
            old[name].ms if name in old else None,
            new[name].ms if name in new else None,
        )
        for name in dict.fromkeys((*new, *old))
    ]
    return Comparison(
        outcome=what,
        sentence=" ".join(said),
        headline=said[0].rstrip("."),
        remarks=said[1:],
        before=before.subject(),
        after=after.subject(),
        figures=figures,
        phases=tuple(sides.pair(kind) for kind in phases()),
        frames=compiler.frames(sides, files),
        causes=found,
        breaks=compiler.breaks(sides, files),
        recompiles=compiler.chains(sides, files),
        categories=tuple(
            sorted(pairs, key=lambda row: -abs((row.after_ms or 0.0) - (row.before_ms or 0.0)))
        ),
        environment=tuple(
            row
            for row in _environments(before.diagnosis, after.diagnosis)
            if row.before != row.after
        ),
        notes=tuple(notes(sides, files)),
    )


def _environments(before: Diagnosis, after: Diagnosis) -> Iterator[Difference]:
    """Every fact, variable and setting; one that a run did not record is left out."""
    old, new = before.environment, after.environment
    for section, names in _FACTS.items():
        for name in names:
            if old.get(name) is not None and new.get(name) is not None:
                yield Difference(section, name, value_text(old[name]), value_text(new[name]))
    # without a collector, that nothing is set does not mean torch's defaults
    if all(found.get("settings") or found.get("variables") for found in (old, new)):
        named = (found.get("variables") for found in (old, new))
        yield from _joined("variables", *(v if isinstance(v, dict) else {} for v in named))
        # settings that differ from torch's default in at least one run
        ours, theirs = _settings(old), _settings(new)
        for key in sorted({*ours, *theirs}):
            was, now = ours.get(key), theirs.get(key)
            default = (was or now or {}).get("default")
            values = (default if row is None else row.get("value") for row in (was, now))
            yield Difference(*key, *map(value_text, values))
    yield Difference("traceview", "version", before.traceview, after.traceview)
    left = (dict.fromkeys(d.rules.left_out, "not selected") for d in (before, after))
    yield from _joined("rules left out", *left)


def _joined(section: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Difference]:
    for name in sorted({*old, *new}):
        yield Difference(section, name, value_text(old.get(name)), value_text(new.get(name)))


def _settings(environment: Mapping[str, Any]) -> dict[tuple[str, str], Mapping[str, Any]]:
    found = environment.get("settings")
    return {
        (str(row.get("section")), str(row.get("name"))): row
        for row in (found if isinstance(found, list) else [])
        if isinstance(row, dict)
    }


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
    step, eager = figures["compiled_ms"], figures["eager_ms"]
    new, old = (milliseconds(ms or 0.0) for ms in (step.after, step.before))
    took = f"a compiled step takes {new} instead of {old} ({_percent(step)})"
    match what:
        case "failed":
            yield "B failed and A did not."
            if sentence := sides.after.diagnosis.verdict.sentence:
                yield sentence
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
    if machines := sides.other_machine:
        yield f"{machines}, so times that were measured once are not compared."
    unrest = sides.unrest(0.0)
    if not machines and unrest > 0.25:
        yield (
            f"The machine's speed varied by {unrest * 100:.0f} % between timed blocks, so no "
            "smaller change is claimed for times that were measured once."
        )
    versions = [d.environment.get("torch_version") for d in (before, after)]
    if None not in versions and versions[0] != versions[1]:
        yield f"The torch version differs: {versions[0]} in A, {versions[1]} in B."
    for old, new in files.partner.items():
        if PurePosixPath(old).name != PurePosixPath(new).name:
            yield (
                f"{near(new, after)} of B is matched with {near(old, before)} of A: at least half "
                "of their lines are the same."
            )
    for name, side in (("A", before), ("B", after)):
        if unread := side.reading.unreadable:
            yield (
                f"{plural(unread, 'piece')} of the logs of {name} could not be read, so its counts "
                "may be too low."
            )
    if before.traceview != after.traceview:
        yield (
            f"Made by traceview {before.traceview or '?'} and {after.traceview or '?'}: a finding "
            "may be new because its rule is."
        )


def _percent(pair: FigurePair) -> str:
    """``−22 %, 95 % interval −25 to −18 %``."""
    if pair.ratio is None:
        return "no ratio"
    percent = f"{change(pair.ratio)} %"
    if pair.ratio_interval is None:
        return percent
    low, high = (change(end) for end in pair.ratio_interval)
    return f"{percent}, 95 % interval {low} to {high} %"
