"""Kernels without counted operations: bandwidth against their share of the busy time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from markupsafe import Markup

from traceview.diagnosis.explanation import Ceiling, KernelLimit
from traceview.diagnosis.model import Diagnosis
from traceview.reports import phrases, svg, words
from traceview.reports.pictures.accounts import STANCES
from traceview.reports.pictures.roofline import bandwidths, on_roofline
from traceview.words import names
from traceview.words import numbers as fmt

_HEAD, _HEIGHT, _GAP, _PART = 24, 96.0, 22, 12.0
_MOST = 80
_LEAST = 0.02  # of the busy time: a picture of less says nothing


class _Strip(msgspec.Struct, frozen=True):
    """One stance: its kernels by what is known of them, and the time of all the width."""

    stance: str
    moved: list[tuple[int, KernelLimit]]  # row of the table, kernel
    above_ms: float  # on the roofline
    unknown_ms: float
    busy_ms: float

    @property
    def moved_ms(self) -> float:
        """Of the kernels that are drawn as bars."""
        return sum(kernel.ms for _, kernel in self.moved)


def bandwidth(diagnosis: Diagnosis) -> Markup:
    """A bar a kernel: as wide as its share of the busy time, as high as its GB/s.

    Empty where next to all of the time is on the roofline, or of unknown bytes.
    """
    strips = [strip for stance in STANCES if (strip := _strip(diagnosis, stance)).moved]
    if not any(strip.moved_ms > _LEAST * strip.busy_ms for strip in strips):
        return svg.EMPTY
    lines = bandwidths(diagnosis)
    fastest = max(kernel.gb_s or 0.0 for strip in strips for _, kernel in strip.moved)
    high = 1.12 * max(fastest, *(c.value for c in lines if c.kind == "copy"), 0.0)
    parts: list[Markup] = []
    for index, strip in enumerate(strips):
        top = index * (_HEAD + _HEIGHT + _GAP)
        parts += _drawn(strip, top, high, [c for c in lines if c.value <= high])
    height = len(strips) * (_HEAD + _HEIGHT + _GAP) - _GAP + 6
    title = "Bandwidth of kernels against their share of the busy time"
    return svg.picture("bandwidth", height, title, "; ".join(map(_spoken, strips)), parts)


def _strip(diagnosis: Diagnosis, stance: str) -> _Strip:
    rows = [
        (number, kernel)
        for number, kernel in enumerate(diagnosis.explanation.limits, 1)
        if kernel.stance == stance and svg.drawable(kernel.ms) and kernel.ms > 0
    ]
    moved = [(n, k) for n, k in rows if not on_roofline(k) and svg.drawable(k.gb_s) and k.gb_s > 0]
    above = sum(kernel.ms for _, kernel in rows if on_roofline(kernel))
    known = above + sum(kernel.ms for _, kernel in moved)
    busy = next((s.busy_ms for s in diagnosis.explanation.step_limits if s.stance == stance), None)
    whole = max(busy if svg.drawable(busy) else 0.0, sum(kernel.ms for _, kernel in rows))
    ordered = sorted(moved, key=lambda row: -row[1].ms)[:_MOST]
    return _Strip(stance, ordered, above, whole - known, whole)


def _drawn(strip: _Strip, top: float, high: float, lines: Sequence[Ceiling]) -> Iterable[Markup]:
    floor = top + _HEAD + _HEIGHT
    said = f"all the width: {fmt.milliseconds(strip.busy_ms)} per step"
    yield svg.text(0, top + 14, strip.stance, "rowvalue")
    yield svg.text(100, top + 14, said, "rowlabel", "end")
    yield svg.rect(0, 100, top + _HEAD, _HEIGHT, "track")
    left = 0.0
    for number, kernel in strip.moved:
        width = kernel.ms / strip.busy_ms * 100
        height = max(2.0, (kernel.gb_s or 0.0) / high * _HEIGHT)
        family = words.family(kernel.category)
        shape = svg.filled(left, width, floor - height, height, family, "bandwidth")
        yield svg.titled(_said(number, kernel), shape)
        if width >= 3:
            yield svg.text(left + width / 2, floor - 5, str(number), "dotno halo tight", "middle")
        left += width
    yield from _rest(strip, left, floor)
    for ceiling in lines:
        y = floor - ceiling.value / high * _HEIGHT
        yield svg.line(0, y, 100, y, "ceiling" if ceiling.kind == "copy" else "ceiling other")
        yield svg.text(100, y + 14, phrases.ceiling(ceiling), "ceilingname halo", "end")


def _rest(strip: _Strip, left: float, floor: float) -> Iterable[Markup]:
    """Low blocks for the time of which this picture has no bandwidth."""
    known = (("rest", strip.above_ms, "on the roofline"), ("unex", strip.unknown_ms, "not known"))
    for family, ms, label in known:
        width = ms / strip.busy_ms * 100
        if width < 0.05:
            continue
        shape = svg.filled(left, width, floor - _PART, _PART, family, "bandwidth")
        share = fmt.percent(ms / strip.busy_ms)
        yield svg.titled(f"{label}: {fmt.milliseconds(ms)} per step, {share}", shape)
        if width >= 12:
            yield svg.text(left + 0.6, floor - _PART - 4, f"{label}, {share}", "tick halo tight")
        left += width


def _said(number: int, kernel: KernelLimit) -> str:
    return (
        f"{number}: {names.kernel(kernel.name)}, {fmt.milliseconds(kernel.ms)} per step,"
        f" {fmt.rate(kernel.gb_s, 'GB/s')}, {fmt.percent(kernel.of_ceiling)} of the ceiling"
    )


def _spoken(strip: _Strip) -> str:
    bars = ", ".join(_said(number, kernel) for number, kernel in strip.moved[:20])
    unknown = fmt.percent(strip.unknown_ms / strip.busy_ms)
    return f"{strip.stance}: {bars}; not known: {unknown} of {fmt.milliseconds(strip.busy_ms)}"
