"""Shapes of inline SVG.

Places along x are percentages and text keeps its size, so a picture fits a phone and a page alike
without scaling its letters; y is in CSS pixels. Colours are classes of pictures.css, so that light,
dark and print each have their own. Every picture says in its ``desc`` what it shows.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeGuard

from markupsafe import Markup

from traceview.words.text import cut, display_width, one_line

EMPTY = Markup("")
#: Families that are hatched, and with which pattern.
HATCHED = dict.fromkeys(("idle", "idle-sync", "idle-py", "idle-call", "idle-data"), "idle") | {
    "over": "over",
    "unex": "unex",
}
#: Idle leans left, overhead right, unexplained is crossed. Ids belong to one picture.
_HATCHES = Markup(
    '<defs><pattern id="{n}-idle" width="6" height="6" patternUnits="userSpaceOnUse"'
    ' patternTransform="rotate(45)"><path d="M0 0V6" class="hatch"/></pattern>'
    '<pattern id="{n}-over" width="5" height="5" patternUnits="userSpaceOnUse"'
    ' patternTransform="rotate(-45)"><path d="M0 0V5" class="hatch"/></pattern>'
    '<pattern id="{n}-unex" width="7" height="7" patternUnits="userSpaceOnUse"'
    ' patternTransform="rotate(45)"><path d="M0 0V7M0 0H7" class="hatch"/></pattern></defs>'
)
_THIN = 0.6  # percent
LONGEST_TITLE, _LONGEST_WORDS = 300, 4000


def drawable(value: float | None) -> TypeGuard[float]:
    """Whether ``value`` has a place on a scale: a number, and neither absurdly large nor small."""
    return value is not None and (value == 0 or 1e-15 < abs(value) < 1e18)


def picture(
    name: str, height: float, title: str, description: str, parts: Iterable[Markup]
) -> Markup:
    """The ``<svg>`` around ``parts``; ``name`` is unique on the page and ours, not a log's."""
    return Markup(
        '<svg class="picture" role="img" width="100%" height="{h:.0f}"'
        ' aria-labelledby="{n}-t {n}-d"><title id="{n}-t">{t}</title><desc id="{n}-d">{d}</desc>'
        "{hatches}{parts}</svg>"
    ).format(
        h=height,
        n=name,
        t=one_line(title, LONGEST_TITLE),
        d=one_line(description, _LONGEST_WORDS),
        hatches=_HATCHES.format(n=name),
        parts=EMPTY.join(parts),
    )


def rect(left: float, width: float, top: float, height: float, kind: str) -> Markup:
    """``left`` and ``width`` in percent; ``kind`` is the class."""
    return Markup(
        '<rect x="{:.3f}%" y="{:.1f}" width="{:.3f}%" height="{:.1f}" class="{}"/>'
    ).format(left, top, width, height, kind)


def filled(left: float, width: float, top: float, height: float, family: str, name: str) -> Markup:
    """A rectangle in a family's colour, hatched where the family is; ``name``: the picture's."""
    # The gap that parts neighbours would hide what is hardly wider than itself.
    thin = " thin" if width < _THIN else ""
    shape = rect(left, width, top, height, f"f-{family}{thin}")
    return shape + hatched(left, width, top, height, family, name) if family in HATCHED else shape


def hatched(left: float, width: float, top: float, height: float, family: str, name: str) -> Markup:
    """Nothing but a family's hatching."""
    return Markup(
        '<rect x="{:.3f}%" y="{:.1f}" width="{:.3f}%" height="{:.1f}" fill="url(#{}-{})"/>'
    ).format(left, top, width, height, name, HATCHED[family])


def line(left: float, top: float, right: float, bottom: float, kind: str) -> Markup:
    """From (``left`` %, ``top``) to (``right`` %, ``bottom``)."""
    return Markup('<line x1="{:.3f}%" y1="{:.1f}" x2="{:.3f}%" y2="{:.1f}" class="{}"/>').format(
        left, top, right, bottom, kind
    )


def text(x: float, y: float, words: str, kind: str, anchor: str = "start") -> Markup:
    """One line of text whose baseline is at ``y``."""
    return Markup('<text x="{:.3f}%" y="{:.1f}" class="{}" text-anchor="{}">{}</text>').format(
        x, y, kind, anchor, one_line(words, LONGEST_TITLE)
    )


def fitted(y: float, words: str, kind: str, page: int = 90, phone: int = 30) -> Markup:
    """A line of text from the left edge, cut to the columns that a page and that a phone has."""
    said = one_line(words, LONGEST_TITLE)
    if display_width(said) <= phone:
        return text(0, y, said, kind)
    return text(0, y, _cut(said, page), f"{kind} tight") + text(
        0, y, _cut(said, phone), f"{kind} phone"
    )


def _cut(said: str, columns: int) -> str:
    return said if display_width(said) <= columns else cut(said, columns - 1).rstrip() + "…"


def circle(x: float, y: float, radius: float, kind: str) -> Markup:
    """A circle of ``radius`` CSS pixels."""
    return Markup('<circle cx="{:.3f}%" cy="{:.1f}" r="{:.1f}" class="{}"/>').format(
        x, y, radius, kind
    )


def titled(tip: str, *parts: Markup) -> Markup:
    """``parts`` with a tooltip."""
    return Markup("<g><title>{}</title>{}</g>").format(
        one_line(tip, LONGEST_TITLE), EMPTY.join(parts)
    )


def ribbon(
    left: float, width: float, start: tuple[float, float], end: tuple[float, float], kind: str
) -> Markup:
    """A band between two spans (top, bottom) of y: a stretched drawing of its own."""
    top, bottom = min(start[0], end[0]), max(start[1], end[1])
    height = max(1.0, bottom - top)
    a, b, c, d = (y - top for y in (*start, *end))
    path = f"M0 {a:.1f}C50 {a:.1f} 50 {c:.1f} 100 {c:.1f}V{d:.1f}C50 {d:.1f} 50 {b:.1f} 0 {b:.1f}Z"
    return Markup(
        '<svg x="{:.3f}%" y="{:.1f}" width="{:.3f}%" height="{:.1f}" aria-hidden="true"'
        ' viewBox="0 0 100 {:.1f}" preserveAspectRatio="none"><path d="{}" class="{}"/></svg>'
    ).format(left, top, width, height, height, path, kind)
