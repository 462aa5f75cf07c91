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
Values = Mapping[str, str | None]
Row = tuple[str, str, str | None, str | None]


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
    said = sentences(what, sides, by_key, found)
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
            Difference(section, name, old, new)
            for section, name, old, new in _environments(before.diagnosis, after.diagnosis)
            if old != new
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


def _environments(before: Diagnosis, after: Diagnosis) -> Iterator[Row]:
    """Every fact, variable and setting; one that a run did not record is left out."""
    old, new = before.environment, after.environment
    for section, names in _FACTS.items():
        for name in names:
            if old.get(name) is not None and new.get(name) is not None:
                yield section, name, value_text(old[name]), value_text(new[name])
    if _recorded(old) and _recorded(new):
        yield from _joined("variables", _variables(old), _variables(new))
        yield from _settings(old, new)
    yield "traceview", "version", before.traceview, after.traceview
    left = (dict.fromkeys(d.rules.left_out, "not selected") for d in (before, after))
    yield from _joined("rules left out", *left)


def _joined(section: str, old: Values, new: Values) -> Iterator[Row]:
    for name in sorted({*old, *new}):
        yield section, name, old.get(name), new.get(name)


def _recorded(environment: Mapping[str, Any]) -> bool:
    """Whether a collector recorded settings; without one, none does not mean torch's defaults."""
    return bool(environment.get("settings") or environment.get("variables"))


def _variables(environment: Mapping[str, Any]) -> Values:
    found = environment.get("variables")
    return {k: value_text(v) for k, v in found.items()} if isinstance(found, dict) else {}


def _settings(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Row]:
    """Settings that differ from torch's default in at least one run."""
    ours, theirs = _by_name(old), _by_name(new)
    for section, name in sorted({*ours, *theirs}):
        was, is_ = ours.get((section, name)), theirs.get((section, name))
        default = value_text((was or is_ or {}).get("default"))
        values = [default if row is None else value_text(row.get("value")) for row in (was, is_)]
        yield section, name, values[0], values[1]


def _by_name(environment: Mapping[str, Any]) -> dict[tuple[str, str], Mapping[str, Any]]:
    found = environment.get("settings")
    rows = found if isinstance(found, list) else []
    return {
        (str(row.get("section")), str(row.get("name"))): row
        for row in rows
        if isinstance(row, dict)
    }
