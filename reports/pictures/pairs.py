"""Eager against compiled: every block pair's ratio, and groups of kernels in two columns.

The ratios stand on one axis with the median and the interval. Of the groups, eager kernels are at
the left and what replaced them at the right.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeGuard

import msgspec
from markupsafe import Markup

from traceview.diagnosis.explanation import MatchGroup
from traceview.diagnosis.model import Diagnosis
from traceview.reports import colours, phrases, svg, words
from traceview.words import numbers as fmt
from traceview.words.text import one_line

_MOST = 40
_PITCH, _TOP = 16, 26
_TITLE = "Eager over compiled time of every block pair, with median and 95 % interval"
_GROUPS = 12
_TALLEST, _THINNEST = 110.0, 2.0
_LABEL_LINE, _SMALL_LINE, _GAP = 20, 18, 16
_LEFT, _RIGHT = 34.0, 66.0  # percent: where the left column ends and the right one begins
_PHONE, _PAGE = 42, 130  # columns of the small line on a phone and on a page


class _Dot(msgspec.Struct, frozen=True):
    """One point: its value, whether it counts, and its words."""

    value: float
    used: bool
    words: str


def pairs(diagnosis: Diagnosis) -> Markup:
    """Dots on one axis, a row each, with the interval as a band, the median and 1× as lines."""
    dots = _near_axis(_dots(diagnosis))
    if not dots:
        return svg.EMPTY
    middle, ends = diagnosis.verdict.speedup, diagnosis.verdict.speedup_interval
    middle = middle if svg.drawable(middle) else None
    ends = ends if ends and all(svg.drawable(end) for end in ends) else None
    values = [d.value for d in dots] + list(ends or ()) + ([middle] if middle is not None else [])
    low, high = min(values), max(values)
    # 1× (no change) is drawn where it does not squeeze the dots together.
    if min(abs(low - 1), abs(high - 1)) <= 2 * (high - low) or (low <= 1.2 and high >= 0.8):
        low, high = min(low, 1.0), max(high, 1.0)
    margin = (high - low) * 0.06 or max(abs(high) * 0.02, 0.01)
    low, high = low - margin, high + margin

    def at(value: float) -> float:
        return 2 + 96 * (value - low) / (high - low)

    bottom = _TOP + _PITCH * len(dots) + 4
    top = _TOP - 6
    parts: list[Markup] = []
    if ends is not None:
        width = max(0.3, at(ends[1]) - at(ends[0]))
        parts.append(svg.rect(at(ends[0]), width, top, bottom - top, "band"))
    if low <= 1.0 <= high:
        parts.append(svg.line(at(1.0), top, at(1.0), bottom, "one"))
        if middle is None or abs(at(1.0) - at(middle)) > 14:
            parts.append(svg.text(at(1.0), 13, "1×", "tick", anchor="middle"))
    if middle is not None:
        x = at(middle)
        anchor = "start" if x < 15 else "end" if x > 85 else "middle"
        parts.append(svg.line(x, top, x, bottom, "median"))
        parts.append(svg.text(x, 13, f"median {middle:.2f}×", "rowlabel", anchor=anchor))
    for row, dot in enumerate(dots):
        kind, y = "dot" if dot.used else "dot unused", _TOP + 8 + row * _PITCH
        parts.append(svg.titled(dot.words, svg.circle(at(dot.value), y, 4.5, kind)))
    for share, anchor in ((0.02, "start"), (0.5, "middle"), (0.98, "end")):
        value = low + (high - low) * share
        parts.append(svg.text(at(value), bottom + 16, f"{value:.3g}×", "tick", anchor=anchor))
    return svg.picture("pairs", bottom + 22, _TITLE, "; ".join(dot.words for dot in dots), parts)


def off_axis(diagnosis: Diagnosis) -> int:
    """How many left-out pairs lie too far away to be drawn."""
    dots = _dots(diagnosis)
    return len(dots) - len(_near_axis(dots))


def _dots(diagnosis: Diagnosis) -> list[_Dot]:
    found = []
    for index, pair in enumerate(diagnosis.pairs[:_MOST]):
        ratio, used = pair.get("speedup"), bool(pair.get("used", True))
        if (
            isinstance(ratio, bool)
            or not isinstance(ratio, int | float)
            or not math.isfinite(ratio)
        ):
            continue
        said = f"pair {pair.get('pair_index', index)}: {fmt.ratio(ratio)}"
        if not used:
            said = one_line(f"{said}, left out: {pair.get('left_out') or fmt.MISSING}", 300)
        found.append(_Dot(float(ratio), used, said))
    return found


def _near_axis(dots: list[_Dot]) -> list[_Dot]:
    """Without the left-out pairs whose ratio would squeeze the others together."""
    used = [dot.value for dot in dots if dot.used]
    if not used:
        return dots
    margin = max(max(used) - min(used), 0.02 * max(used))
    low, high = min(used) - margin, max(used) + margin
    return [dot for dot in dots if dot.used or low <= dot.value <= high]


def groups(diagnosis: Diagnosis) -> Markup:
    """The slowest groups, a slot each; the height of a block is its time, on one scale."""
    shown = _shown(diagnosis)
    sides = (ms for group in shown for ms in (group.eager_ms, group.compiled_ms))
    longest = max((ms for ms in sides if svg.drawable(ms)), default=0.0)
    if longest <= 0:
        return svg.EMPTY
    scale = _TALLEST / longest
    parts: list[Markup] = []
    top = 0.0
    for group in shown:
        eager, compiled = (
            max(_THINNEST, ms * scale) if _given(ms) else 0.0
            for ms in (group.eager_ms, group.compiled_ms)
        )
        tall = max(eager, compiled) if eager and compiled else max(12.0, eager, compiled)
        middle = top + _LABEL_LINE + tall / 2
        left = (middle - eager / 2, middle + eager / 2)
        right = (middle - compiled / 2, middle + compiled / 2)
        # Source lines and what is computed there.
        sources = (words.user_lines(group.lines, diagnosis), phrases.computes(group))
        below, said = top + _LABEL_LINE + tall + 14, " · ".join(filter(None, sources))
        parts.append(svg.text(0, top + 14, phrases.side(group, "eager"), "rowlabel"))
        parts.append(svg.text(100, top + 14, phrases.side(group, "compiled"), "rowvalue", "end"))
        parts.append(svg.fitted(below, said, "tick", _PAGE, _PHONE))
        if eager and compiled:
            parts.append(svg.ribbon(_LEFT, _RIGHT - _LEFT, left, right, "ribbon"))
        shapes = [*_block(group, "eager", 0.0, _LEFT, left)]
        shapes += _block(group, "compiled", _RIGHT, 100 - _RIGHT, right)
        parts.append(svg.titled(phrases.group(group), *shapes))
        top += _LABEL_LINE + tall + _SMALL_LINE + _GAP
    title = "Eager kernels at the left and the compiled ones that replaced them at the right"
    return svg.picture("groups", top - _GAP + 4, title, "; ".join(map(phrases.group, shown)), parts)


def undrawn_groups(diagnosis: Diagnosis) -> int:
    """How many groups the picture has no room for."""
    return len(diagnosis.explanation.matching.groups) - len(_shown(diagnosis))


def _shown(diagnosis: Diagnosis) -> list[MatchGroup]:
    found = diagnosis.explanation.matching.groups
    return [g for g in found if _given(g.eager_ms) or _given(g.compiled_ms)][:_GROUPS]


def _given(ms: float | None) -> TypeGuard[float]:
    return svg.drawable(ms) and ms > 0


def _block(
    group: MatchGroup, stance: str, left: float, width: float, span: tuple[float, float]
) -> Iterable[Markup]:
    """One side, a stripe for each category; an outline where nothing stands there."""
    top, bottom = span
    if bottom <= top:
        yield svg.rect(left, width, top - 4, 8, "outline")
        return
    ms: dict[str, float] = {}
    for kernel in group.kernels:
        if kernel.stance == stance and _given(kernel.ms):
            ms[kernel.category] = ms.get(kernel.category, 0.0) + kernel.ms
    whole = sum(ms.values())
    shares = sorted(((name, part / whole) for name, part in ms.items()), key=lambda row: -row[1])
    tall = bottom - top
    for category, share in shares or [("other", 1.0)]:
        height = share * tall
        yield svg.filled(left, width, top, height, colours.family(category), "groups")
        top += height
