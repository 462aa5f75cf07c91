"""Pictures as inline SVG.

Places along x are percentages and text keeps its size, so a picture fits a phone and a page alike
without scaling its letters; y is in CSS pixels. Colours are classes of report.css, so that light,
dark and print each have their own. Every picture says in its ``desc`` what it shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from traceview.reports.text import one_line

EMPTY = Markup("")
_LONGEST_TITLE, _LONGEST_WORDS = 300, 4000


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a bar: its length in the scale's unit, its colour class and its words."""

    length: float
    family: str
    label: str
    value: str
    start: float | None = None


@dataclass(frozen=True, slots=True)
class Bar:
    """One row of a bar picture; ``value`` is printed at the right of ``label``."""

    label: str
    value: str
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class Dot:
    """One point on a strip: its value, whether it counts, and its words."""

    value: float
    used: bool
    words: str


def picture(
    name: str, height: float, title: str, description: str, parts: Iterable[Markup]
) -> Markup:
    """The ``<svg>`` around ``parts``; ``name`` is unique on the page and ours, not a log's."""
    return Markup(
        '<svg class="picture" role="img" width="100%" height="{h:.0f}"'
        ' aria-labelledby="{n}-t {n}-d"><title id="{n}-t">{t}</title><desc id="{n}-d">{d}</desc>'
        "{parts}</svg>"
    ).format(
        h=height,
        n=name,
        t=one_line(title, _LONGEST_TITLE),
        d=one_line(description, _LONGEST_WORDS),
        parts=EMPTY.join(parts),
    )


def bars(name: str, title: str, rows: Sequence[Bar], thick: int = 22) -> Markup:
    """Stacked bars on one scale, each under its own line of text; the longest has all the width."""
    scale = max((sum(s.length for s in row.segments) for row in rows), default=0.0)
    if scale <= 0:
        return EMPTY
    pitch = thick + 38
    parts: list[Markup] = [_hatches(name)]
    for index, row in enumerate(rows):
        top = index * pitch
        parts.append(_text(0, top + 15, row.label, "rowlabel"))
        parts.append(_text(100, top + 15, row.value, "rowvalue", anchor="end"))
        left = 0.0
        for segment in row.segments:
            width = segment.length / scale * 100
            parts.append(_segment(segment, left, width, top + 22, thick, name))
            left += width
    words = "; ".join(f"{row.label} {row.value}: {_spoken(row.segments)}" for row in rows)
    return picture(name, len(rows) * pitch - 12, title, words, parts)


def strip(
    name: str,
    title: str,
    dots: Sequence[Dot],
    middle: float | None,
    ends: tuple[float, float] | None,
) -> Markup:
    """Dots on one axis, a row each, with the interval as a band, the median and 1× as lines."""
    values = [d.value for d in dots] + list(ends or ()) + ([middle] if middle is not None else [])
    if not values:
        return EMPTY
    low, high = _span([*values, 1.0] if _near_one(values) else values)

    def at(value: float) -> float:
        return 2 + 96 * (value - low) / (high - low)

    pitch, top = 16, 26
    bottom = top + pitch * len(dots) + 4
    parts: list[Markup] = []
    if ends is not None:
        width = max(0.3, at(ends[1]) - at(ends[0]))
        parts.append(_rect(at(ends[0]), width, top - 6, bottom - top + 6, "band"))
    if low <= 1.0 <= high:
        parts.append(_line(at(1.0), top - 6, bottom, "one"))
        if middle is None or abs(at(1.0) - at(middle)) > 14:
            parts.append(_text(at(1.0), 13, "1×", "tick", anchor="middle"))
    if middle is not None:
        parts.append(_line(at(middle), top - 6, bottom, "median"))
        anchor = "start" if at(middle) < 15 else "end" if at(middle) > 85 else "middle"
        parts.append(_text(at(middle), 13, f"median {middle:.2f}×", "rowlabel", anchor=anchor))
    for row, dot in enumerate(dots):
        parts.append(_dot(at(dot.value), top + 8 + row * pitch, dot))
    parts.extend(_ticks(low, high, at, bottom + 16))
    words = "; ".join(dot.words for dot in dots)
    return picture(name, bottom + 22, title, words, parts)


def gantt(name: str, title: str, rows: Sequence[Bar], unit: str = "s") -> Markup:
    """Bars that begin where they began (``Segment.start``, in ``unit``), on one axis from the
    earliest start."""
    placed = [s for row in rows for s in row.segments if s.start is not None]
    if not placed:
        return EMPTY
    zero = min(s.start for s in placed if s.start is not None)
    span = max((s.start or 0.0) + s.length for s in placed) - zero
    if span <= 0:
        return EMPTY
    pitch = 36
    parts: list[Markup] = [_hatches(name)]
    for index, row in enumerate(rows):
        top = index * pitch
        parts.append(_text(0, top + 14, row.label, "rowlabel"))
        parts.append(_text(100, top + 14, row.value, "rowvalue", anchor="end"))
        parts.append(_rect(0, 100, top + 19, 12, "track"))
        for segment in row.segments:
            left = ((segment.start or zero) - zero) / span * 100
            width = segment.length / span * 100
            parts.append(_segment(segment, left, max(width, 0.15), top + 19, 12, name))
    bottom = len(rows) * pitch
    parts.append(_text(0, bottom + 12, f"0 {unit}", "tick"))
    end = f"{span:.3g}" if span < 100 else f"{span:,.0f}"
    parts.append(_text(100, bottom + 12, f"{end} {unit}", "tick", anchor="end"))
    words = "; ".join(f"{row.label} {row.value}: {_spoken(row.segments)}" for row in rows)
    return picture(name, bottom + 18, title, words, parts)


def _segment(
    segment: Segment, left: float, width: float, top: float, thick: int, name: str
) -> Markup:
    """A filled part with a tooltip, and its words inside it where they have room."""
    hatched = segment.family in {"idle", "over"}
    shape = _rect(left, width, top, thick, f"f-{segment.family}")
    if hatched:
        fill = f"url(#{name}-{segment.family})"
        shape += Markup(
            '<rect x="{:.3f}%" y="{:.0f}" width="{:.3f}%" height="{:.0f}" fill="{}"/>'
        ).format(left, top, width, thick, fill)
    tip = one_line(f"{segment.label} {segment.value}", _LONGEST_TITLE)
    label = EMPTY
    room = "roomy" if width >= 2.0 * len(segment.label) else "tight"
    if thick >= 20 and segment.label and width >= max(8.0, 0.8 * len(segment.label)):
        kind = f"inside {room}" + (" hatched" if hatched else "")
        label = _text(left + 0.8, top + thick * 0.68, segment.label, kind)
    return Markup("<g><title>{}</title>{}{}</g>").format(tip, shape, label)


def _spoken(segments: Iterable[Segment]) -> str:
    return ", ".join(f"{s.label} {s.value}".strip() for s in segments) or "nothing recorded"


def _hatches(name: str) -> Markup:
    """Two hatch patterns: idle leans left, overhead right. Their ids belong to this picture."""
    return Markup(
        '<defs><pattern id="{n}-idle" width="6" height="6" patternUnits="userSpaceOnUse"'
        ' patternTransform="rotate(45)"><path d="M0 0V6" class="hatch"/></pattern>'
        '<pattern id="{n}-over" width="5" height="5" patternUnits="userSpaceOnUse"'
        ' patternTransform="rotate(-45)"><path d="M0 0V5" class="hatch"/></pattern></defs>'
    ).format(n=name)


def _span(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    margin = (high - low) * 0.06 or max(abs(high) * 0.02, 0.01)
    return low - margin, high + margin


def _near_one(values: Sequence[float]) -> bool:
    """1× (no change) is drawn where it does not squeeze the dots together."""
    low, high = min(values), max(values)
    return min(abs(low - 1), abs(high - 1)) <= 2 * (high - low) or (low <= 1.2 and high >= 0.8)


def _ticks(low: float, high: float, at: Callable[[float], float], y: float) -> list[Markup]:
    labels = []
    for index, anchor in enumerate(("start", "middle", "end")):
        value = low + (high - low) * (0.02, 0.5, 0.98)[index]
        labels.append(_text(at(value), y, f"{value:.3g}×", "tick", anchor=anchor))
    return labels


def _dot(x: float, y: float, dot: Dot) -> Markup:
    kind = "dot" if dot.used else "dot unused"
    return Markup(
        '<g><title>{}</title><circle cx="{:.3f}%" cy="{:.0f}" r="4.5" class="{}"/></g>'
    ).format(one_line(dot.words, _LONGEST_TITLE), x, y, kind)


def _rect(left: float, width: float, top: float, height: float, kind: str) -> Markup:
    return Markup(
        '<rect x="{:.3f}%" y="{:.0f}" width="{:.3f}%" height="{:.0f}" class="{}"/>'
    ).format(left, top, width, height, kind)


def _line(x: float, top: float, bottom: float, kind: str) -> Markup:
    return Markup('<line x1="{x:.3f}%" x2="{x:.3f}%" y1="{:.0f}" y2="{:.0f}" class="{}"/>').format(
        top, bottom, kind, x=x
    )


def _text(x: float, y: float, words: str, kind: str, anchor: str = "start") -> Markup:
    return Markup('<text x="{:.3f}%" y="{:.0f}" class="{}" text-anchor="{}">{}</text>').format(
        x, y, kind, anchor, one_line(words, _LONGEST_TITLE)
    )
