"""Compile time: the parts of the first call, compiles by function, phases below each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import Markup

from traceview.diagnosis.explanation import FirstCallPart, PhaseSpan
from traceview.diagnosis.model import CompileRow, Diagnosis
from traceview.reports import colours, svg
from traceview.reports.pictures.bars import (
    LABEL,
    Bar,
    Segment,
    gantt,
    segment_shape,
    stacked,
    time_axis,
)
from traceview.words import names
from traceview.words import numbers as fmt
from traceview.words.text import one_line

_FUNCTIONS, _PARTS, _CALLS = 16, 160, 6
_LABEL_LINE, _LANE, _THICK, _GAP = 20, 17, 16, 12
_FRAMES, _SPANS, _DEEPEST, _WORKERS = 12, 1200, 11, 5
_THINNEST = 0.08  # percent
_UNTIED = "not tied to a compile"


def placed(diagnosis: Diagnosis) -> list[CompileRow]:
    """The compiles that have a start and a length."""
    rows = diagnosis.compiles
    return [row for row in rows if svg.drawable(row.started_s) and svg.drawable(row.seconds)]


def compiles(diagnosis: Diagnosis) -> Markup:
    """A row for every frame (the slowest, the rest together), divided by exclusive phases."""
    frames: dict[tuple[str, str], list[CompileRow]] = {}
    for row in placed(diagnosis):
        frames.setdefault((_frame_of(row.compile_id), row.name), []).append(row)
    slowest = sorted(frames.values(), key=_seconds, reverse=True)
    shown = sorted(slowest[:_FUNCTIONS], key=lambda rows: min(map(_start, rows)))
    lanes = [_lane(f"{_frame_of(rows[0].compile_id)} {rows[0].name}", rows) for rows in shown]
    if rest := [row for rows in slowest[_FUNCTIONS:] for row in rows]:
        lanes.append(_lane(fmt.plural(len(slowest) - _FUNCTIONS, "more function"), rest))
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
        drawn = tuple(
            Segment(
                part.ms,
                colours.phase(part.part),
                one_line(names.word(names.PHASES, part.part), LABEL),
                fmt.milliseconds(part.ms),
            )
            for part in mine[:_PARTS]
            if part.ms > 0
        )
        rows.append(Bar(one_line(f"{said} {name or 'a region'}", LABEL), whole, drawn))
    return rows


def _frame_of(compile_id: str) -> str:
    """``3`` of ``3/1``."""
    return compile_id.rpartition("/")[0]


def _seconds(rows: Iterable[CompileRow]) -> float:
    return sum(row.seconds or 0.0 for row in rows)


def _lane(label: str, rows: Sequence[CompileRow]) -> Bar:
    many = f" · {fmt.plural(len(rows), 'compile')}" if len(rows) > 1 else ""
    longest = sorted(rows, key=lambda row: -(row.seconds or 0.0))[:_PARTS]
    parts = []
    # Phases one after the other: their lengths are exact, their order within a compile is not.
    for row in sorted(longest, key=_start):
        start, left = _start(row), row.seconds or 0.0
        for name, length in row.phases.items():
            if svg.drawable(length) and length > 0:
                said = one_line(f"{row.compile_id} {names.phase(name)}", LABEL)
                family = colours.phase(name)
                parts.append(Segment(length, family, said, fmt.seconds(length), start))
                start, left = start + length, left - length
        if left > 1e-3:
            said = one_line(f"{row.compile_id} not divided", LABEL)
            parts.append(Segment(left, "rest", said, fmt.seconds(left), start))
    return Bar(one_line(label, LABEL) + many, fmt.seconds(_seconds(rows)), tuple(parts))


def _start(row: CompileRow) -> float:
    return row.started_s or 0.0


def phases(diagnosis: Diagnosis) -> Markup:
    """Spans where they lay on the host clock; what workers did meanwhile has lanes of its own."""
    spans = [
        span
        for span in diagnosis.explanation.phases
        if svg.drawable(span.started_s) and svg.drawable(span.seconds) and span.seconds > 0
    ]
    if not spans:
        return svg.EMPTY
    spans = sorted(spans, key=lambda span: -span.seconds)[:_SPANS]
    zero = min(span.started_s for span in spans)
    scale = max(span.started_s + span.seconds for span in spans) - zero
    parts: list[Markup] = []
    said: list[str] = []
    top = 0.0
    for label, rows in _frames(spans, diagnosis):
        lanes = _lanes(rows)
        whole = fmt.seconds(
            sum(span.seconds for span in rows if not span.depth and not span.parallel)
        )
        parts += [
            svg.fitted(top + 15, label, "rowlabel halo"),
            svg.text(100, top + 15, whole, "rowvalue halo", "end"),
        ]
        for index, (lane, tone) in enumerate(lanes):
            y = top + _LABEL_LINE + index * _LANE
            parts.append(svg.rect(0, 100, y, _THICK, tone))
            for span in sorted(lane, key=lambda s: s.started_s):
                left = (span.started_s - zero) / scale * 100
                width = max(span.seconds / scale * 100, _THINNEST)
                own = f", {fmt.seconds(span.self_seconds)} of its own" if span.self_seconds else ""
                value = f"{fmt.seconds(span.seconds)}{own} ({one_line(span.label, LABEL)})"
                name = one_line(span.name or span.label, LABEL)
                part = Segment(span.seconds, colours.phase(span.part or ""), name, value)
                at = min(left, 100 - _THINNEST)
                parts.append(segment_shape(part, at, width, y, _THICK, "phases"))
        said.append(f"{label} {whole}")
        top += _LABEL_LINE + len(lanes) * _LANE + _GAP
    axis = time_axis(scale, "s", 0, top - _GAP / 2)
    title = "Compiles over time by frame and phase; nested phases lie below the one that holds them"
    return svg.picture("phases", top + 14, title, "; ".join(said), [*axis, *parts])


def phase_families(diagnosis: Diagnosis) -> list[tuple[str, str]]:
    """Colour class and words of the parts of compiling that the picture shows."""
    parts = {span.label: span.part for span in diagnosis.explanation.phases}
    return [(colours.phase(part or ""), label) for label, part in list(parts.items())[:16]]


def _frames(spans: Iterable[PhaseSpan], diagnosis: Diagnosis) -> list[tuple[str, list[PhaseSpan]]]:
    """Label and spans of the slowest frames, in order of start."""
    frames: dict[str, list[PhaseSpan]] = {}
    for span in spans:
        frames.setdefault(_frame_of(span.compile_id or "") or "", []).append(span)
    called = {_frame_of(row.compile_id): row.name for row in reversed(diagnosis.compiles)}
    slowest = sorted(frames, key=lambda frame: -max(span.seconds for span in frames[frame]))
    shown = sorted(
        slowest[:_FRAMES], key=lambda frame: min(span.started_s for span in frames[frame])
    )
    return [
        (one_line(f"{frame} {called.get(frame, '')}".strip() or _UNTIED, LABEL), frames[frame])
        for frame in shown
    ]


def _lanes(spans: Sequence[PhaseSpan]) -> list[tuple[list[PhaseSpan], str]]:
    """One lane for every depth, then those of the workers, whose spans may overlap."""
    deepest = min(_DEEPEST, max((s.depth for s in spans if not s.parallel), default=-1))
    own = [
        ([s for s in spans if not s.parallel and s.depth == depth], "track")
        for depth in range(deepest + 1)
    ]
    workers: list[list[PhaseSpan]] = []
    for span in sorted((s for s in spans if s.parallel), key=lambda s: s.started_s):
        free = next(
            (lane for lane in workers if lane[-1].started_s + lane[-1].seconds <= span.started_s),
            None,
        )
        if free is not None:
            free.append(span)
        elif len(workers) < _WORKERS:
            workers.append([span])
    return own + [(lane, "track workers") for lane in workers]
