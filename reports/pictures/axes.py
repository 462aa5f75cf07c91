"""Scales, round numbers and the lines that carry them."""

from __future__ import annotations

import math

from markupsafe import Markup

from traceview.reports import svg


def nice_ticks(span: float, about: int = 4) -> list[float]:
    """Round numbers from 0 to ``span``: steps of 1, 2 or 5 times a power of ten."""
    step = span / about
    power = 10.0 ** math.floor(math.log10(step))
    unit = next(u for u in (1, 2, 5, 10) if u * power >= step * 0.999)
    return [index * unit * power for index in range(int(span / (unit * power) + 1e-9) + 1)]


def time_axis(span: float, unit: str, top: float, bottom: float) -> list[Markup]:
    """Upright lines at round times from ``top`` to ``bottom``, their figures below."""
    parts = []
    for tick in nice_ticks(span):
        x = tick / span * 100
        anchor = "start" if x < 3 else "end" if x > 94 else "middle"
        parts.append(svg.line(x, top, x, bottom, "grid"))
        parts.append(svg.text(x, bottom + 14, f"{tick:.6g} {unit}", "tick", anchor))
    return parts


class LogScale:
    """Places of values between ``low`` and ``high`` (both above 0), from 0 to ``length``."""

    def __init__(self, low: float, high: float, length: float) -> None:
        self.low, self.high, self._length = low, high, length
        self._from, self._span = math.log10(low), math.log10(high) - math.log10(low)

    def at(self, value: float) -> float:
        """Where ``value`` lies; what is off the scale lies at its end."""
        place = (math.log10(value) - self._from) / self._span if value > 0 else 0.0
        return min(1.0, max(0.0, place)) * self._length

    def round_values(self, most: int = 7) -> list[float]:
        """Powers of ten, thinned to ``most``; on a short scale 2 and 5 times them too."""
        powers = range(math.floor(self._from), math.floor(self._from + self._span + 1e-9) + 1)
        units = (1, 2, 5) if self._span < 2.2 else (1,)
        step = max(1, -(-len(powers) // most)) if len(units) == 1 else 1
        found = (unit * 10.0**power for power in powers[::step] for unit in units)
        return [value for value in found if 0.999 * self.low <= value <= 1.001 * self.high]
