"""Compiles over time: a row for every frame, phases nested below each other; the first call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import Markup

from traceview.diagnosis.explanation import FirstCallPart
from traceview.diagnosis.model import CompileRow, Diagnosis
from traceview.reports import svg, words
from traceview.reports.pictures.accounts import LABEL
from traceview.reports.pictures.bars import Bar, Segment, stacked
from traceview.reports.pictures.gantt import gantt
from traceview.words import numbers as fmt
from traceview.words.text import one_line

_LANES, _PARTS, _CALLS = 16, 160, 6


def placed(diagnosis: Diagnosis) -> list[CompileRow]:
    """The compiles that have a start and a length."""
    rows = diagnosis.compiles
    return [row for row in rows if svg.drawable(row.started_s) and svg.drawable(row.seconds)]


def compiles(diagnosis: Diagnosis) -> Markup:
    """A row for every frame (the dearest, the rest together), divided by exclusive phases."""
    frames: dict[tuple[str, str], list[CompileRow]] = {}
    for row in placed(diagnosis):
        frames.setdefault((frame_of(row.compile_id), row.name), []).append(row)
    dearest = sorted(frames.values(), key=_seconds, reverse=True)
    shown = sorted(dearest[:_LANES], key=lambda rows: min(map(_start, rows)))
    lanes = [_lane(f"{frame_of(rows[0].compile_id)} {rows[0].name}", rows) for rows in shown]
    if rest := [row for rows in dearest[_LANES:] for row in rows]:
        lanes.append(_lane(fmt.plural(len(dearest) - _LANES, "more function"), rest))
    return gantt("compiles", "Compiles over time, by phase", lanes)


def first_calls(diagnosis: Diagnosis) -> Markup:
    """The first call of each region, divided into its parts, on one scale; on the warm cache too,
    where that was measured."""
    x = diagnosis.explanation
    cold = _first_rows(diagnosis, x.first_calls, "first call of")
    warm = _first_rows(diagnosis, x.warm_first_calls, "on the warm cache, first call of")
    title = "The first compiled call by what it went to"
    return stacked("first-calls", title, [*cold, *warm], 26)


def _first_rows(diagnosis: Diagnosis, parts: Iterable[FirstCallPart], said: str) -> list[Bar]:
    regions: dict[int | None, list[FirstCallPart]] = {}
    for part in parts:
        if svg.drawable(part.ms):
            regions.setdefault(part.region_id, []).append(part)
    known = {region.region_id: region.name for region in diagnosis.regions}
    rows = []
    for region, mine in list(regions.items())[:_CALLS]:
        name = known.get(region) if region is not None else None
        whole = fmt.milliseconds(sum(part.ms for part in mine))
        drawn = tuple(_first_part(part) for part in mine[:_PARTS] if part.ms > 0)
        rows.append(Bar(one_line(f"{said} {name or 'a region'}", LABEL), whole, drawn))
    return rows


def _first_part(part: FirstCallPart) -> Segment:
    label = one_line(words.part(part.part), LABEL)
    return Segment(part.ms, words.phase_family(part.part), label, fmt.milliseconds(part.ms))


def frame_of(compile_id: str) -> str:
    """``3`` of ``3/1``."""
    return compile_id.rpartition("/")[0]


def _seconds(rows: Iterable[CompileRow]) -> float:
    return sum(row.seconds or 0.0 for row in rows)


def _lane(label: str, rows: Sequence[CompileRow]) -> Bar:
    many = f" · {fmt.plural(len(rows), 'compile')}" if len(rows) > 1 else ""
    longest = sorted(rows, key=lambda row: -(row.seconds or 0.0))[:_PARTS]
    parts = [part for row in sorted(longest, key=_start) for part in _phases(row)]
    return Bar(one_line(label, LABEL) + many, fmt.seconds(_seconds(rows)), tuple(parts))


def _start(row: CompileRow) -> float:
    return row.started_s or 0.0


def _phases(row: CompileRow) -> Iterable[Segment]:
    """Phases one after the other: their lengths are exact, their order within a compile is not."""
    start, left = row.started_s or 0.0, row.seconds or 0.0
    for name, length in row.phases.items():
        if not svg.drawable(length) or length <= 0:
            continue
        label = one_line(f"{row.compile_id} {words.phase(name)}", LABEL)
        yield Segment(length, words.phase_family(name), label, fmt.seconds(length), start)
        start, left = start + length, left - length
    if left > 1e-3:
        label = one_line(f"{row.compile_id} not divided", LABEL)
        yield Segment(left, "rest", label, fmt.seconds(left), start)
