"""Bars that begin where something began, a row each, on one axis."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from markupsafe import Markup

from traceview.reports import svg
from traceview.reports.pictures.bars import Bar, segment_shape, spoken
from traceview.words import numbers as fmt

_PITCH, _LABEL, _THICK = 36, 19, 12
_THINNEST = 0.15  # percent: what is shorter is drawn this wide


def gantt(
    name: str,
    title: str,
    rows: Sequence[Bar],
    unit: str = "s",
    zero: float | None = None,
    joined: bool = False,
) -> Markup:
    """``Segment.start`` in ``unit``; the axis begins at ``zero``, else at the earliest start.

    With ``joined`` a thin line leads from the end of each bar to the next one. What begins before
    ``zero`` is cut there.
    """
    placed = [
        (s.start, s.length)
        for row in rows
        for s in row.segments
        if svg.drawable(s.start) and svg.drawable(s.length)
    ]
    if not placed:
        return svg.EMPTY
    low = min(start for start, _ in placed) if zero is None else zero
    span = max(start + length for start, length in placed) - low
    if span <= 0 or not svg.drawable(span):
        return svg.EMPTY
    parts = [part for index, row in enumerate(rows) for part in _row(row, index, low, span, name)]
    if low < 0:
        parts.append(svg.line(-low / span * 100, 0, -low / span * 100, len(rows) * _PITCH, "one"))
    if joined:
        parts = [*_joints(rows, low, span), *parts]
    bottom = len(rows) * _PITCH
    parts.append(svg.text(0, bottom + 12, _tick(0.0 if zero is None else low, unit), "tick"))
    end = span if zero is None else low + span
    parts.append(svg.text(100, bottom + 12, _tick(end, unit), "tick", anchor="end"))
    return svg.picture(name, bottom + 18, title, spoken(rows), parts)


def _row(bar: Bar, index: int, low: float, span: float, name: str) -> list[Markup]:
    top = index * _PITCH
    parts = [
        svg.fitted(top + 14, bar.label, "rowlabel halo"),
        svg.text(100, top + 14, bar.value, "rowvalue halo", anchor="end"),
        svg.rect(0, 100, top + _LABEL, _THICK, "track"),
    ]
    for segment in bar.segments:
        if not svg.drawable(segment.start) or not svg.drawable(segment.length):
            continue
        left = max(0.0, (segment.start - low) / span * 100)
        right = (segment.start + segment.length - low) / span * 100
        width = min(max(right - left, _THINNEST), 100.0)
        left = min(left, 100.0 - width)
        parts.append(segment_shape(segment, left, width, top + _LABEL, _THICK, name))
    return parts


def _joints(rows: Sequence[Bar], low: float, span: float) -> list[Markup]:
    """Lines from the end of a bar to the next one, at the place that they share."""
    found = []
    edges = [_edges(row) for row in rows]
    for index, (here, there) in enumerate(pairwise(edges)):
        gap, end = min(((abs(a - b), a) for a in here for b in there), default=(span, 0.0))
        if gap <= 1e-6 * span:
            x = min(100.0, max(0.0, (end - low) / span * 100))
            top = index * _PITCH + _LABEL
            found.append(svg.line(x, top + _THICK, x, top + _PITCH, "joint"))
    return found


def _edges(row: Bar) -> list[float]:
    """Where a bar of one segment begins and ends."""
    if len(row.segments) != 1 or row.segments[0].start is None:
        return []
    part = row.segments[0]
    start = part.start or 0.0
    return [start, start + part.length]


def _tick(value: float, unit: str) -> str:
    said = f"{value:.3g}" if abs(value) < 100 else fmt.count(value)
    return f"{said.replace('-', '−')} {unit}"
