"""Two diagnoses → what changed from the first to the second."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from traceview.compare import causes as found_causes
from traceview.compare import compiler
from traceview.compare.causes import causes
from traceview.compare.figures import kinds, phases
from traceview.compare.files import Files
from traceview.compare.model import CategoryPair, Comparison, Difference
from traceview.compare.noise import Sides
from traceview.compare.sentence import notes, outcome, sentences
from traceview.compare.side import Side, value_text
from traceview.diagnosis.model import Diagnosis

#: Names of the facts of an environment by section, in the order of the report.
_FACTS = {
    "versions": [
        "torch_version",
        "triton_version",
        "cuda_version",
        "driver_version",
        "python_version",
    ],
    "machine": ["device_name", "device_count", "device_capability", "cpu_threads", "platform"],
    "run": ["argv", "rank", "ranks", "step_kind"],
}


def compare(before: Side, after: Side) -> Comparison:
    """The comparison of two runs; a figure that one of them lacks is reported as not recorded."""
    sides = Sides(before, after)
    named = [
        [*found_causes.file_names(side.diagnosis), *compiler.file_names(side)]
        for side in (before, after)
    ]
    files = Files(before, after, *named)
    figures = tuple(sides.pair(kind) for kind in kinds())
    by_key = {pair.key: pair for pair in figures}
    found = causes(sides, files)
    what = outcome(sides, by_key)
    said = tuple(sentences(what, sides, by_key, found))
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
        categories=_categories(before.diagnosis, after.diagnosis),
        environment=tuple(
            row
            for row in _environments(before.diagnosis, after.diagnosis)
            if row.before != row.after
        ),
        notes=tuple(notes(sides, files)),
    )


def _categories(before: Diagnosis, after: Diagnosis) -> tuple[CategoryPair, ...]:
    """Where the time of a compiled step goes, the largest difference first."""
    old, new = (
        {row.category: row for row in d.accounting.get("compiled", ())} for d in (before, after)
    )
    found = [
        CategoryPair(
            name,
            (new.get(name) or old[name]).kind,
            old[name].ms if name in old else None,
            new[name].ms if name in new else None,
        )
        for name in dict.fromkeys((*new, *old))
    ]
    return tuple(
        sorted(found, key=lambda row: -abs((row.after_ms or 0.0) - (row.before_ms or 0.0)))
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
