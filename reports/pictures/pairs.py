"""Every block pair's ratio, with the median and the interval."""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec
from markupsafe import Markup

from traceview.diagnosis.model import Diagnosis
from traceview.reports import svg
from traceview.words import numbers as fmt
from traceview.words.text import one_line

_MOST = 40
_PITCH, _TOP = 16, 26
_TITLE = "Eager over compiled time of every block pair, with median and 95 % interval"


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
    parts = list(_marks(at, low, high, middle, ends, bottom))
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


def _marks(
    at: Callable[[float], float],
    low: float,
    high: float,
    middle: float | None,
    ends: tuple[float, float] | None,
    bottom: float,
) -> list[Markup]:
    parts: list[Markup] = []
    top = _TOP - 6
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
    return parts


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
