"""From the eager step to the compiled one: a bar for each effect, else for each category."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup

from traceview.diagnosis.model import Diagnosis
from traceview.reports import svg, words
from traceview.reports.pictures.accounts import LABEL, STANCES, drawable, total
from traceview.reports.pictures.bars import Bar, Segment
from traceview.reports.pictures.gantt import gantt
from traceview.reports.view import digits
from traceview.words import names
from traceview.words import numbers as fmt
from traceview.words.text import one_line

_MOST_EFFECTS, _MOST_CATEGORIES = 16, 7
# A category's change below this share of the longer step is drawn with "everything else".
_SMALL = 0.01
# The axis begins at nought unless all of the waterfall lies above this share of its top.
_HIGH = 0.6
_TITLE = "From the eager step to the compiled one: what became shorter and longer"


def waterfall(diagnosis: Diagnosis) -> Markup:
    """The named effects; where there are none, the differences of the categories."""
    ends = _ends(diagnosis)
    if ends is None:
        return svg.EMPTY
    eager, compiled = ends
    steps, at = [], eager
    for name, change, family in _changes(diagnosis, max(eager, compiled)):
        steps.append(_changed(name, at, change, digits(diagnosis), family))
        at += change
    if abs(compiled - at) >= 1e-3 * max(eager, compiled):
        steps.append(_changed("everything else", at, compiled - at, digits(diagnosis)))
    if not steps:
        return svg.EMPTY
    first, last = _whole("eager", eager), _whole("compiled", compiled)
    return gantt("waterfall", _TITLE, [first, *steps, last], "ms", axis_start(diagnosis), True)


def axis_start(diagnosis: Diagnosis) -> float:
    """Milliseconds at which the axis begins: 0; just below the lowest bar where all changes are
    small; below 0 where effects lead there."""
    ends = _ends(diagnosis)
    if ends is None:
        return 0.0
    at, levels = ends[0], list(ends)
    for _, change, _ in _changes(diagnosis, max(ends)):
        at += change
        levels.append(at)
    low, high = min(levels), max(levels)
    if low > _HIGH * high and high > low:
        return low - (high - low) * 0.5
    return min(0.0, low)


def category_changes(diagnosis: Diagnosis) -> list[tuple[str, float, float]]:
    """Category, eager ms and compiled ms, the largest change first; needs both stances."""
    sides = [
        {row.category: row.ms for row in diagnosis.accounting.get(stance, ()) if drawable(row)}
        for stance in STANCES
    ]
    if not all(sides):
        return []
    found = [
        (name, sides[0].get(name, 0.0), sides[1].get(name, 0.0))
        for name in dict.fromkeys(name for side in sides for name in side)
    ]
    return sorted(found, key=lambda row: -abs(row[2] - row[1]))


def _ends(diagnosis: Diagnosis) -> tuple[float, float] | None:
    """The two medians; for categories, the two sums."""
    if diagnosis.explanation.waterfall:
        eager, compiled = diagnosis.verdict.eager_ms, diagnosis.verdict.compiled_ms
    elif category_changes(diagnosis):
        eager, compiled = (total(diagnosis.accounting[stance]) for stance in STANCES)
    else:
        return None
    if not svg.drawable(eager) or not svg.drawable(compiled) or min(eager, compiled) < 0:
        return None
    return (eager, compiled) if max(eager, compiled) > 0 else None


def _changes(diagnosis: Diagnosis, longer: float) -> Iterable[tuple[str, float, str | None]]:
    """Words, ms (negative: saved) and a colour of its own, if any, in the order of drawing."""
    least = 0.5 * 10.0 ** -digits(diagnosis)  # what would be written as nought
    for effect in diagnosis.explanation.waterfall[:_MOST_EFFECTS]:
        if svg.drawable(effect.ms) and abs(effect.ms) >= least:
            yield (
                names.effect(effect.effect, effect.ms),
                effect.ms,
                words.effect_family(effect.effect),
            )
    if not diagnosis.explanation.waterfall:
        for name, before, after in category_changes(diagnosis)[:_MOST_CATEGORIES]:
            if abs(after - before) >= _SMALL * longer:
                yield words.category(name), after - before, None


def _changed(label: str, at: float, change: float, decimals: int, family: str | None = None) -> Bar:
    """One change, drawn from ``at`` (ms) to where it leads."""
    tone = family or ("less" if change < 0 else "more")
    value = f"{fmt.difference(0.0, change, decimals)} ms"
    part = Segment(abs(change), tone, label, value, min(at, at + change))
    return Bar(one_line(label, LABEL), value, (part,))


def _whole(stance: str, ms: float) -> Bar:
    part = Segment(ms, f"stance-{stance}", stance, fmt.milliseconds(ms), 0.0)
    return Bar(stance, fmt.milliseconds(ms), (part,))
