"""Two diagnoses → what changed from the first to the second."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from traceview.compare import causes as found_causes
from traceview.compare import compiler
from traceview.compare.causes import causes
from traceview.compare.environment import differences
from traceview.compare.figures import kinds, phases
from traceview.compare.files import Files
from traceview.compare.model import CategoryPair, Comparison
from traceview.compare.noise import BY_DEVICE, Sides
from traceview.compare.sentence import outcome, sentence
from traceview.compare.side import Side
from traceview.diagnosis.model import AccountRow, Diagnosis
from traceview.diagnosis.near import near


def compare(before: Side, after: Side) -> Comparison:
    """The comparison of two runs; whatever one of them did not record is said to be so."""
    sides = Sides(before, after)
    files = Files(before, after, _files(before.diagnosis), _files(after.diagnosis))
    figures = tuple(sides.pair(kind) for kind in kinds())
    by_key = {pair.key: pair for pair in figures}
    found = causes(sides, files)
    what = outcome(sides, by_key)
    return Comparison(
        outcome=what,
        sentence=sentence(what, sides, by_key, found),
        before=before.subject(),
        after=after.subject(),
        figures=figures,
        phases=tuple(sides.pair(kind) for kind in phases()),
        frames=compiler.frames(sides, files),
        causes=found,
        breaks=compiler.breaks(sides, files),
        recompiles=compiler.chains(sides, files),
        categories=_categories(before.diagnosis, after.diagnosis),
        environment=differences(before, after),
        notes=tuple(_notes(sides, files)),
    )


def _files(diagnosis: Diagnosis) -> Iterator[str]:
    yield from found_causes.file_names(diagnosis)
    yield from compiler.file_names(diagnosis)


def _categories(before: Diagnosis, after: Diagnosis) -> tuple[CategoryPair, ...]:
    """Where the time of a compiled step goes, the largest difference first."""
    old, new = (
        {row.category: row for row in d.accounting.get("compiled", ())} for d in (before, after)
    )
    found = [_category(old.get(name), new.get(name)) for name in dict.fromkeys((*new, *old))]
    return tuple(
        sorted(found, key=lambda row: -abs((row.after_ms or 0.0) - (row.before_ms or 0.0)))
    )


def _category(old: AccountRow | None, new: AccountRow | None) -> CategoryPair:
    shown = next(row for row in (new, old) if row)
    times = (row.ms if row else None for row in (old, new))
    return CategoryPair(shown.category, shown.kind, *times)


def _notes(sides: Sides, files: Files) -> Iterator[str]:
    """What the reader must know to trust the figures."""
    before, after = sides.before.diagnosis, sides.after.diagnosis
    if before.pairs and after.pairs:
        allowed = sides.between_processes()
        pace = "the device" if allowed == BY_DEVICE else "the host"
        yield (
            f"Each run is one process. The same script's step, paced by {pace}, differs by up to "
            f"{allowed * 100:.0f} % from process to process, so no smaller change of a step is "
            "claimed."
        )
    unrest = sides.unrest(0.0)
    if unrest > 0.25:
        yield (
            f"While its blocks were timed, a machine's own speed varied by {unrest * 100:.0f} %: "
            "seconds that were measured once are not claimed to differ by less."
        )
    for name, said in (("torch_version", "torch"), ("device_name", "the device")):
        values = [d.environment.get(name) for d in (before, after)]
        if None not in values and values[0] != values[1]:
            yield f"Not the same {said.removeprefix('the ')}: {values[0]} and {values[1]}."
    for old, new in files.partner.items():
        if PurePosixPath(old).name != PurePosixPath(new).name:
            was, is_ = near(old, before), near(new, after)
            yield f"{is_} of B is taken for {was} of A: half of their lines or more are the same."
    if before.traceview != after.traceview:
        yield (
            f"Made by traceview {before.traceview or '?'} and {after.traceview or '?'}: a finding "
            "may have come because its rule has."
        )
