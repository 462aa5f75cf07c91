"""Stacked bars on one scale, and bars that begin where something began."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from markupsafe import Markup

from traceview.reports import svg

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

    ``beside`` is drawn after the bar's end in outline: it is not part of it. ``excess`` is drawn
    along the foot of the bar's end: so much of it is too much.
    """

    label: str
    value: str
    segments: tuple[Segment, ...]
    beside: Segment | None = None
    excess: Segment | None = None

    @property
    def length(self) -> float:
        """Of the segments together."""
        return sum(segment.length for segment in self.segments)


def stacked(name: str, title: str, rows: Sequence[Bar], thick: int = 22) -> Markup:
    """Stacked bars on one scale, each under its own line of text; the longest has all the width.

    What is drawn beside a bar may widen the scale to 1.6 times the longest bar; what is longer
    still runs off the edge.
    """
    longest = max((row.length for row in rows), default=0.0)
    if longest <= 0 or not svg.drawable(longest):
        return svg.EMPTY
    ends = [row.length + (row.beside.length if row.beside else 0.0) for row in rows]
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
        if row.beside:
            parts.append(_beside(row.beside, left, scale, top + _LABEL_LINE, thick))
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
        + "".join(f"; beside it {part.words}" for part in (row.beside, row.excess) if part)
        for row in rows
    )


def _beside(segment: Segment, left: float, scale: float, top: float, thick: int) -> Markup:
    width = min(segment.length / scale * 100, 100 - left)
    shape = svg.rect(left + 0.4, max(0.2, width - 0.4), top + 3, thick - 6, "outline")
    fits = width >= max(_ROOM, _WIDE_LETTER * len(segment.label))
    label = svg.text(left + 1.2, top + thick / 2 + 4.5, segment.label, "inside tight beside")
    return svg.titled(segment.words, shape, label if fits else svg.EMPTY)
