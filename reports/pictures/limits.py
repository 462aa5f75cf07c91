"""Kernels and what the device can do: the roofline; bandwidth where no operations are counted."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec
from markupsafe import Markup

from traceview.diagnosis.explanation import Ceiling, KernelLimit
from traceview.diagnosis.model import Diagnosis
from traceview.reports import colours, phrases, svg
from traceview.reports.pictures.bars import LogScale
from traceview.words import names
from traceview.words import numbers as fmt

_STANCES = ("eager", "compiled")
_HEIGHT, _FOOT = 330.0, 36.0
_SMALLEST, _GROWTH, _NUMBERED, _MOST = 3.5, 12.0, 10, 300
_CEILINGS = 6
Parts = list[Markup]
_TITLE = "Kernels by operations per byte and by operations a second, below the device's ceilings"
_HEAD, _TALL, _GAP, _PART = 24, 96.0, 22, 12.0
_BARS = 80
_LEAST = 0.02  # of the busy time: a picture of less says nothing


class _Point(msgspec.Struct, frozen=True):
    number: int  # row of the table
    kernel: KernelLimit
    intensity: float  # operations per byte
    rate: float  # TFLOP/s


class _Plot(msgspec.Struct, frozen=True):
    x: LogScale
    y: LogScale

    def place(self, intensity: float, rate: float) -> tuple[float, float]:
        """Percent and pixels."""
        return self.x.at(intensity), _HEIGHT - self.y.at(rate)

    def ceilings(self, rates: Sequence[Ceiling], tops: Sequence[Ceiling]) -> tuple[Parts, Parts]:
        """Lines and their words: bandwidths slant up to the top matrix rate, matrix rates are flat.

        The words of the fastest bandwidth stand left of its upper end, the others' right of the
        line, further down; of flat lines that lie close, the highest has words.
        """
        lines, said, named = [], [], [-99.0]
        roof = tops[0].value if tops else self.y.high
        for index, rate in enumerate(rates):
            start = max(self.x.low, self.y.low * 1000 / rate.value)
            end = min(self.x.high, roof * 1000 / rate.value)
            if start >= end:
                continue
            (x1, y1), (x2, y2) = (self.place(x, rate.value * x / 1000) for x in (start, end))
            kind = "ceiling" if rate.kind == "copy" else "ceiling other"
            lines.append(svg.line(x1, y1, x2, y2, kind))
            left = index == 0 and len(rates) > 1
            share, shift, anchor = (
                (0.96, -1.5, "end") if left else (0.5 - 0.12 * index, 1.5, "start")
            )
            x, y = x1 + (x2 - x1) * share, y1 + (y2 - y1) * share
            room = " tight" if left and x2 < 52 else ""  # a phone has none further left
            style = f"ceilingname halo{room}"
            said.append(svg.text(x + shift, y + 4, phrases.ceiling(rate), style, anchor))
        for top in tops:
            begin = top.value * 1000 / rates[0].value if rates else self.x.low
            x, y = self.place(max(self.x.low, begin), top.value)
            lines.append(svg.line(x, y, 100, y, "ceiling"))
            if y - named[-1] > 13:
                said.append(svg.text(100, y - 4, phrases.ceiling(top), "ceilingname halo", "end"))
                named.append(y)
        return lines, said

    def dots(self, points: Sequence[_Point]) -> Iterable[Markup]:
        """Solid below hollow and large below small, so that all are seen; the slowest wear their
        row's number."""
        longest = max(point.kernel.ms for point in points)
        ordered = sorted(points, key=lambda p: (p.kernel.stance == "eager", -p.kernel.ms))
        slowest = sorted(point.kernel.ms for point in points)[-_NUMBERED:]
        numbers = []
        taken: list[tuple[float, float]] = []
        for point in ordered:
            x, y = self.place(point.intensity, point.rate)
            radius = _SMALLEST + _GROWTH * math.sqrt(point.kernel.ms / longest)
            style = "hollow" if point.kernel.stance == "eager" else "solid"
            kind = f"f-{colours.family(point.kernel.category)} {style}"
            yield svg.titled(_said(point), svg.circle(x, y, radius, kind))
            free = all(abs(x - a) > 4 or abs(y - b) > 14 for a, b in taken)
            if point.kernel.ms >= slowest[0] and free:
                taken.append((x, y))
                numbers.append(svg.text(x, y + 4, str(point.number), "dotno halo", "middle"))
        yield from numbers


def roofline(diagnosis: Diagnosis) -> Markup:
    """Kernels as dots sized by time, eager hollow and compiled solid; ceilings as lines."""
    points = [
        _Point(number, kernel, (kernel.flops or 0) / (kernel.bytes or 1), kernel.tflop_s or 0.0)
        for number, kernel in enumerate(diagnosis.explanation.limits[:_MOST], 1)
        if on_roofline(kernel)
    ]
    if not points:
        return svg.EMPTY
    rates = bandwidths(diagnosis)
    tops = matrix_rates(diagnosis)
    ridges = [top.value * 1000 / rate.value for rate in rates for top in tops]
    xs = [p.intensity for p in points] + ridges
    ys = [p.rate for p in points] + [top.value for top in tops]
    left, right = math.floor(math.log10(min(xs) / 2)), math.ceil(math.log10(max(xs) * 2))
    low = max(min(ys) / 2, max(ys) * 1e-6)
    plot = _Plot(LogScale(10.0**left, 10.0**right, 100.0), LogScale(low, max(ys) * 2.5, _HEIGHT))
    parts: list[Markup] = []
    for value in plot.x.round_values():
        x = plot.x.at(value)
        anchor = "start" if x < 3 else "end" if x > 97 else "middle"
        parts.append(svg.line(x, 0, x, _HEIGHT, "grid"))
        parts.append(svg.text(x, _HEIGHT + 15, fmt.short(value), "tick", anchor))
    heights = plot.y.round_values()
    for value in heights:
        y = _HEIGHT - plot.y.at(value)
        unit = " TFLOP/s" if value == heights[-1] else ""
        parts.append(svg.line(0, y, 100, y, "grid"))
        parts.append(
            svg.text(0.4, y - 3 if y > 16 else y + 13, fmt.short(value) + unit, "tick halo")
        )
    parts.append(svg.text(50, _HEIGHT + 32, "floating-point operations per byte", "tick", "middle"))
    lines, said = plot.ceilings(rates, tops)
    parts += [*lines, *plot.dots(points), *said]
    spoken = "; ".join(_said(point) for point in points[:40])
    ceilings = ", ".join(phrases.ceiling(c) for c in (*rates, *tops)) or "no ceiling was measured"
    return svg.picture(
        "roofline", _HEIGHT + _FOOT, _TITLE, f"Ceilings: {ceilings}. {spoken}", parts
    )


def on_roofline(kernel: KernelLimit) -> bool:
    """Whether both bytes and operations of a kernel are known, and its rate."""
    figures = (kernel.bytes, kernel.flops, kernel.tflop_s, kernel.ms)
    return all(svg.drawable(figure) and figure > 0 for figure in figures)


def bandwidths(diagnosis: Diagnosis) -> list[Ceiling]:
    """Ceilings in GB/s, the highest first."""
    return _in_unit(diagnosis, "GB/s")


def matrix_rates(diagnosis: Diagnosis) -> list[Ceiling]:
    """Ceilings in TFLOP/s, the highest first."""
    return _in_unit(diagnosis, "TFLOP/s")


def _in_unit(diagnosis: Diagnosis, unit: str) -> list[Ceiling]:
    found = (c for c in diagnosis.explanation.ceilings if c.unit == unit)
    known = (c for c in found if svg.drawable(c.value) and c.value > 0)
    return sorted(known, key=lambda c: -c.value)[:_CEILINGS]


def _said(point: _Point) -> str:
    kernel = point.kernel
    name = names.kernel(kernel.name)
    return (
        f"{point.number}: {name}, {kernel.stance}, {fmt.milliseconds(kernel.ms)} per step,"
        f" {fmt.rate(kernel.tflop_s, 'TFLOP/s')}, {fmt.rate(kernel.gb_s, 'GB/s')}"
    )


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

    def drawn(self, top: float, high: float, lines: Sequence[Ceiling]) -> Iterable[Markup]:
        floor = top + _HEAD + _TALL
        said = f"all the width: {fmt.milliseconds(self.busy_ms)} per step"
        yield svg.text(0, top + 14, self.stance, "rowvalue")
        yield svg.text(100, top + 14, said, "rowlabel", "end")
        yield svg.rect(0, 100, top + _HEAD, _TALL, "track")
        left = 0.0
        for number, kernel in self.moved:
            width = kernel.ms / self.busy_ms * 100
            height = max(2.0, (kernel.gb_s or 0.0) / high * _TALL)
            family = colours.family(kernel.category)
            shape = svg.filled(left, width, floor - height, height, family, "bandwidth")
            yield svg.titled(_bar_said(number, kernel), shape)
            if width >= 3:
                yield svg.text(
                    left + width / 2, floor - 5, str(number), "dotno halo tight", "middle"
                )
            left += width
        # Low blocks for the time of which this picture has no bandwidth.
        rest = (("rest", self.above_ms, "on the roofline"), ("unex", self.unknown_ms, "not known"))
        for family, ms, label in rest:
            width = ms / self.busy_ms * 100
            if width < 0.05:
                continue
            shape = svg.filled(left, width, floor - _PART, _PART, family, "bandwidth")
            share = fmt.percent(ms / self.busy_ms)
            yield svg.titled(f"{label}: {fmt.milliseconds(ms)} per step, {share}", shape)
            if width >= 12:
                yield svg.text(
                    left + 0.6, floor - _PART - 4, f"{label}, {share}", "tick halo tight"
                )
            left += width
        for ceiling in lines:
            y = floor - ceiling.value / high * _TALL
            yield svg.line(0, y, 100, y, "ceiling" if ceiling.kind == "copy" else "ceiling other")
            yield svg.text(100, y + 14, phrases.ceiling(ceiling), "ceilingname halo", "end")


def bandwidth(diagnosis: Diagnosis) -> Markup:
    """A bar a kernel: as wide as its share of the busy time, as high as its GB/s.

    Empty where next to all of the time is on the roofline, or of unknown bytes.
    """
    limits, strips = diagnosis.explanation.limits, []
    for stance in _STANCES:
        rows = [
            (number, kernel)
            for number, kernel in enumerate(limits, 1)
            if kernel.stance == stance and svg.drawable(kernel.ms) and kernel.ms > 0
        ]
        below = [(n, k) for n, k in rows if not on_roofline(k)]
        moved = [(n, k) for n, k in below if svg.drawable(k.gb_s) and k.gb_s > 0]
        above = sum(kernel.ms for _, kernel in rows if on_roofline(kernel))
        known = above + sum(kernel.ms for _, kernel in moved)
        steps = diagnosis.explanation.step_limits
        busy = next((step.busy_ms for step in steps if step.stance == stance), None)
        whole = max(busy if svg.drawable(busy) else 0.0, sum(kernel.ms for _, kernel in rows))
        ordered = sorted(moved, key=lambda row: -row[1].ms)[:_BARS]
        if ordered:
            strips.append(_Strip(stance, ordered, above, whole - known, whole))
    if not any(strip.moved_ms > _LEAST * strip.busy_ms for strip in strips):
        return svg.EMPTY
    lines = bandwidths(diagnosis)
    fastest = max(kernel.gb_s or 0.0 for strip in strips for _, kernel in strip.moved)
    high = 1.12 * max(fastest, *(c.value for c in lines if c.kind == "copy"), 0.0)
    parts: list[Markup] = []
    spoken = []
    for index, strip in enumerate(strips):
        top = index * (_HEAD + _TALL + _GAP)
        parts += strip.drawn(top, high, [c for c in lines if c.value <= high])
        bars = ", ".join(_bar_said(number, kernel) for number, kernel in strip.moved[:20])
        unknown, busy = fmt.percent(strip.unknown_ms / strip.busy_ms), strip.busy_ms
        spoken.append(f"{strip.stance}: {bars}; not known: {unknown} of {fmt.milliseconds(busy)}")
    height = len(strips) * (_HEAD + _TALL + _GAP) - _GAP + 6
    title = "Bandwidth of kernels against their share of the busy time"
    return svg.picture("bandwidth", height, title, "; ".join(spoken), parts)


def _bar_said(number: int, kernel: KernelLimit) -> str:
    return (
        f"{number}: {names.kernel(kernel.name)}, {fmt.milliseconds(kernel.ms)} per step,"
        f" {fmt.rate(kernel.gb_s, 'GB/s')}, {fmt.percent(kernel.of_ceiling)} of the ceiling"
    )
