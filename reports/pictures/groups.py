"""Groups of kernels in two columns: eager at the left, what replaced them at the right."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeGuard

from markupsafe import Markup

from traceview.diagnosis.explanation import MatchGroup
from traceview.diagnosis.model import Diagnosis
from traceview.reports import colours, phrases, svg, words

_GROUPS = 12
_TALLEST, _THINNEST = 110.0, 2.0
_LABEL_LINE, _SMALL_LINE, _GAP = 20, 18, 16
_LEFT, _RIGHT = 34.0, 66.0  # percent: where the left column ends and the right one begins
_PHONE, _PAGE = 42, 130  # columns of the small line on a phone and on a page


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
