"""Groups of kernels in two columns: eager at the left, what replaced them at the right."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup

from traceview.diagnosis.explanation import GroupKernel, MatchGroup
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
        height, drawn = _slot(group, top, scale, diagnosis)
        parts += drawn
        top += height
    title = "Eager kernels at the left and the compiled ones that replaced them at the right"
    return svg.picture("groups", top - _GAP + 4, title, "; ".join(map(phrases.group, shown)), parts)


def undrawn_groups(diagnosis: Diagnosis) -> int:
    """How many groups the picture has no room for."""
    return len(diagnosis.explanation.matching.groups) - len(_shown(diagnosis))


def _shown(diagnosis: Diagnosis) -> list[MatchGroup]:
    found = diagnosis.explanation.matching.groups
    return [g for g in found if _given(g.eager_ms) or _given(g.compiled_ms)][:_GROUPS]


def _given(ms: float | None) -> bool:
    return svg.drawable(ms) and ms > 0


def _slot(
    group: MatchGroup, top: float, scale: float, diagnosis: Diagnosis
) -> tuple[float, list[Markup]]:
    """Height and shapes of one group: a line of figures, the blocks, a line of sources."""
    heights = [
        max(_THINNEST, ms * scale) if svg.drawable(ms) and ms > 0 else 0.0
        for ms in (group.eager_ms, group.compiled_ms)
    ]
    tall = max(heights) if all(heights) else max(12.0, *heights)
    middle = top + _LABEL_LINE + tall / 2
    spans = [(middle - h / 2, middle + h / 2) for h in heights]
    parts = [
        svg.text(0, top + 14, phrases.side(group, "eager"), "rowlabel"),
        svg.text(100, top + 14, phrases.side(group, "compiled"), "rowvalue", "end"),
        svg.fitted(
            top + _LABEL_LINE + tall + 14, _sources(group, diagnosis), "tick", _PAGE, _PHONE
        ),
    ]
    if all(heights):
        parts.append(svg.ribbon(_LEFT, _RIGHT - _LEFT, spans[0], spans[1], "ribbon"))
    shapes = [
        shape
        for stance, left, width, span in (
            ("eager", 0.0, _LEFT, spans[0]),
            ("compiled", _RIGHT, 100 - _RIGHT, spans[1]),
        )
        for shape in _block(group, stance, left, width, span)
    ]
    parts.append(svg.titled(phrases.group(group), *shapes))
    return _LABEL_LINE + tall + _SMALL_LINE + _GAP, parts


def _block(
    group: MatchGroup, stance: str, left: float, width: float, span: tuple[float, float]
) -> Iterable[Markup]:
    """One side, a stripe for each category; an outline where nothing stands there."""
    top, bottom = span
    if bottom <= top:
        yield svg.rect(left, width, top - 4, 8, "outline")
        return
    shares = _shares([k for k in group.kernels if k.stance == stance])
    whole = bottom - top
    for category, share in shares or [("other", 1.0)]:
        height = share * whole
        yield svg.filled(left, width, top, height, colours.family(category), "groups")
        top += height


def _shares(kernels: Iterable[GroupKernel]) -> list[tuple[str, float]]:
    """Category and its share of the block's height, the largest first."""
    ms: dict[str, float] = {}
    for kernel in kernels:
        if svg.drawable(kernel.ms) and kernel.ms > 0:
            ms[kernel.category] = ms.get(kernel.category, 0.0) + kernel.ms
    whole = sum(ms.values())
    return sorted(((name, part / whole) for name, part in ms.items()), key=lambda row: -row[1])


def _sources(group: MatchGroup, diagnosis: Diagnosis) -> str:
    """Source lines and what is computed there."""
    lines = words.user_lines(group.lines, diagnosis)
    return " · ".join(part for part in (lines, phrases.computes(group)) if part)
