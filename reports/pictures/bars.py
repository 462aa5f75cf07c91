"""What pictures are made with: stacked bars, bars on a time axis, scales and round numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

import msgspec
from markupsafe import Markup

from traceview.reports import svg
from traceview.words import numbers as fmt

#: Columns of a label.
LABEL = 60
_LABEL_LINE, _GAP = 22, 16
#: Width in percent that a label needs: at least, and a letter on a page and on a phone.
_ROOM, _WIDE_LETTER, _PHONE_LETTER = 8.0, 0.8, 2.0


class Segment(msgspec.Struct, frozen=True):
    """A part of a bar: its length in the scale's unit, its colour class and its words."""

    length: float
    family: str
    label: str
    value: str
    start: float | None = None

    @property
    def words(self) -> str:
        """What a tooltip says."""
        return f"{self.label} {self.value}".strip()


class Bar(msgspec.Struct, frozen=True):
    """One row: ``value`` is printed at the right of ``label``.

    ``outline`` is drawn after the bar's end: it is not part of it. ``excess`` is drawn
    along the foot of the bar's end: so much of it is too much.
    """

    label: str
    value: str
    segments: tuple[Segment, ...]
    outline: Segment | None = None
    excess: Segment | None = None

    @property
    def length(self) -> float:
        """Of the segments together."""
        return sum(segment.length for segment in self.segments)


def stacked(name: str, title: str, rows: Sequence[Bar], thick: int = 22) -> Markup:
    """Stacked bars on one scale, each under its own line of text; the longest has all the width.

    An outline after a bar may widen the scale to 1.6 times the longest bar; what is longer
    still runs off the edge.
    """
    longest = max((row.length for row in rows), default=0.0)
    if longest <= 0 or not svg.drawable(longest):
        return svg.EMPTY
    ends = [row.length + (row.outline.length if row.outline else 0.0) for row in rows]
    scale = max(longest, min(max(ends), 1.6 * longest))
    pitch = thick + _LABEL_LINE + _GAP
    parts: list[Markup] = []
    for index, row in enumerate(rows):
        top = index * pitch
        parts.append(svg.fitted(top + 15, row.label, "rowlabel"))
        parts.append(svg.text(100, top + 15, row.value, "rowvalue", anchor="end"))
        left = 0.0
        for segment in row.segments:
            width = segment.length / scale * 100
            parts.append(segment_shape(segment, left, width, top + _LABEL_LINE, thick, name))
            left += width
        if row.excess:
            width = min(row.excess.length / scale * 100, left)
            place = (left - width, width, top + _LABEL_LINE + thick * 0.7, thick * 0.3)
            parts.append(svg.titled(row.excess.words, svg.hatched(*place, "unex", name)))
        if part := row.outline:
            width = min(part.length / scale * 100, 100 - left)
            place = (left + 0.4, max(0.2, width - 0.4), top + _LABEL_LINE + 3, thick - 6)
            shapes = [svg.rect(*place, "outline")]
            if width >= max(_ROOM, _WIDE_LETTER * len(part.label)):
                middle = top + _LABEL_LINE + thick / 2 + 4.5
                shapes.append(svg.text(left + 1.2, middle, part.label, "inside tight outer"))
            parts.append(svg.titled(part.words, *shapes))
    return svg.picture(name, len(rows) * pitch - _GAP + 4, title, spoken(rows), parts)


def segment_shape(
    segment: Segment, left: float, width: float, top: float, thick: int, name: str
) -> Markup:
    """A filled part with a tooltip, and its words inside it where they have room."""
    shape = svg.filled(left, width, top, thick, segment.family, name)
    label = svg.EMPTY
    size = len(segment.label)
    if thick >= 16 and size and width >= max(_ROOM, _WIDE_LETTER * size):
        room = "roomy" if width >= _PHONE_LETTER * size else "tight"
        hatched = " hatched" if segment.family in svg.HATCHED else ""
        place = top + thick / 2 + 4.5
        label = svg.text(left + 0.8, place, segment.label, f"inside {room}{hatched}")
    return svg.titled(segment.words, shape, label)


def spoken(rows: Iterable[Bar]) -> str:
    """The bars in words, for those who do not see them."""
    return "; ".join(
        f"{row.label} {row.value}: {', '.join(s.words for s in row.segments) or 'nothing recorded'}"
        + "".join(f"; next to it {part.words}" for part in (row.outline, row.excess) if part)
        for row in rows
    )


def nice_ticks(span: float, about: int = 4) -> list[float]:
    """Round numbers from 0 to ``span``: steps of 1, 2 or 5 times a power of ten."""
    step = span / about
    power = 10.0 ** math.floor(math.log10(step))
    unit = next(u for u in (1, 2, 5, 10) if u * power >= step * 0.999)
    return [index * unit * power for index in range(int(span / (unit * power) + 1e-9) + 1)]


def time_axis(span: float, unit: str, top: float, bottom: float) -> list[Markup]:
    """Upright lines at round times from ``top`` to ``bottom``, their figures below."""
    parts = []
    for tick in nice_ticks(span):
        x = tick / span * 100
        anchor = "start" if x < 3 else "end" if x > 94 else "middle"
        parts.append(svg.line(x, top, x, bottom, "grid"))
        parts.append(svg.text(x, bottom + 14, f"{tick:.6g} {unit}", "tick", anchor))
    return parts


class LogScale:
    """Places of values between ``low`` and ``high`` (both above 0), from 0 to ``length``."""

    def __init__(self, low: float, high: float, length: float) -> None:
        self.low, self.high, self._length = low, high, length
        self._from, self._span = math.log10(low), math.log10(high) - math.log10(low)

    def at(self, value: float) -> float:
        """Where ``value`` lies; what is off the scale lies at its end."""
        place = (math.log10(value) - self._from) / self._span if value > 0 else 0.0
        return min(1.0, max(0.0, place)) * self._length

    def round_values(self, most: int = 7) -> list[float]:
        """Powers of ten, thinned to ``most``; on a short scale 2 and 5 times them too."""
        powers = range(math.floor(self._from), math.floor(self._from + self._span + 1e-9) + 1)
        units = (1, 2, 5) if self._span < 2.2 else (1,)
        step = max(1, -(-len(powers) // most)) if len(units) == 1 else 1
        found = (unit * 10.0**power for power in powers[::step] for unit in units)
        return [value for value in found if 0.999 * self.low <= value <= 1.001 * self.high]


_PITCH, _GANTT_LABEL, _THICK = 36, 19, 12
_JOINT = 5
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

    With ``joined`` a thin line below each bar shows where the next one goes on. What begins before
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
    parts: list[Markup] = []
    for index, row in enumerate(rows):
        top = index * _PITCH
        parts.append(svg.fitted(top + 14, row.label, "rowlabel halo"))
        parts.append(svg.text(100, top + 14, row.value, "rowvalue halo", anchor="end"))
        parts.append(svg.rect(0, 100, top + _GANTT_LABEL, _THICK, "track"))
        for segment in row.segments:
            if not svg.drawable(segment.start) or not svg.drawable(segment.length):
                continue
            left = max(0.0, (segment.start - low) / span * 100)
            right = (segment.start + segment.length - low) / span * 100
            width = min(max(right - left, _THINNEST), 100.0)
            left = min(left, 100.0 - width)
            parts.append(segment_shape(segment, left, width, top + _GANTT_LABEL, _THICK, name))
    if low < 0:
        # Behind the figures, which wear a halo.
        zero_line = svg.line(-low / span * 100, 0, -low / span * 100, len(rows) * _PITCH, "one")
        parts = [zero_line, *parts]
    if joined:
        parts = [*_joints(rows, low, span), *parts]
    bottom = len(rows) * _PITCH
    parts.append(svg.text(0, bottom + 12, _tick(0.0 if zero is None else low, unit), "tick"))
    end = span if zero is None else low + span
    parts.append(svg.text(100, bottom + 12, _tick(end, unit), "tick", anchor="end"))
    return svg.picture(name, bottom + 18, title, spoken(rows), parts)


def _joints(rows: Sequence[Bar], low: float, span: float) -> list[Markup]:
    """Lines from the end of a bar to the next one, at the place that they share."""
    edges: list[tuple[float, ...]] = []
    for row in rows:
        spans = [(s.start, s.start + s.length) for s in row.segments if s.start is not None]
        edges.append(spans[0] if len(spans) == 1 else ())
    found = []
    for index, (here, there) in enumerate(pairwise(edges)):
        gap, end = min(((abs(a - b), a) for a in here for b in there), default=(span, 0.0))
        if gap <= 1e-6 * span:
            x = min(100.0, max(0.0, (end - low) / span * 100))
            top = index * _PITCH + _GANTT_LABEL
            # Between them is the next bar's line of text: the joint stops above it.
            found.append(svg.line(x, top + _THICK, x, top + _THICK + _JOINT, "joint"))
    return found


def _tick(value: float, unit: str) -> str:
    said = f"{value:.3g}" if abs(value) < 100 else fmt.count(value)
    return f"{said.replace('-', '−')} {unit}"
