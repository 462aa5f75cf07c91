"""Numbers with their units, as every report writes them; None is "not recorded"."""

from __future__ import annotations

import math
from typing import TypeGuard

MISSING = "not recorded"
_BYTE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def milliseconds(value: float | None) -> str:
    """A duration given in ms, in the unit that reads best: ``15.2 µs``, ``0.794 ms``."""
    if not _given(value):
        return MISSING
    if value != 0 and abs(value) < 0.1:
        return f"{_three(value * 1000)} µs"
    if abs(value) >= 1000:
        return f"{_three(value / 1000)} s"
    return f"{_three(value)} ms"


def step(value: float | None) -> str:
    """Milliseconds of a step: in ms below 10 s, so that figures of one run compare at a glance."""
    if _given(value) and abs(value) < 10_000:
        return f"{_three(value)} ms"
    return milliseconds(value)


def seconds(value: float | None) -> str:
    """A duration given in s: ``350 ms``, ``1.27 s``, ``212 s``."""
    if not _given(value):
        return MISSING
    if abs(value) < 1:
        return milliseconds(value * 1000)
    return f"{_three(value)} s"


def fixed(value: float | None, digits: int = 3) -> str:
    """A number for a column whose heading names the unit: ``0.794``; the decimals line up."""
    return f"{value:,.{digits}f}".replace("-", "−") if _given(value) else MISSING


def difference(before: float | None, after: float | None, digits: int = 3) -> str:
    """``after - before`` with its sign (none on nought), for a column whose heading names the
    unit."""
    if not _given(before) or not _given(after):
        return MISSING
    said = f"{after - before:+,.{digits}f}".replace("-", "−")
    return said if said.strip("+−0.,") else said.lstrip("+−")


def ratio(value: float | None) -> str:
    """A speedup: ``5.76×``, ``0.98×``, ``123×``."""
    return f"{_times(value)}×" if _given(value) else MISSING


def ratio_interval(interval: tuple[float, float] | None) -> str:
    """Both ends of an interval of speedups: ``5.71–5.80×``."""
    if interval is None or not all(_given(end) for end in interval):
        return MISSING
    low, high = interval
    return f"{_times(low)}–{_times(high)}×"


def size(value: float | None) -> str:
    """Bytes in binary units: ``1.27 GiB``."""
    if not _given(value):
        return MISSING
    amount = float(value)
    for unit in _BYTE_UNITS:
        if abs(amount) < 1024 or unit == _BYTE_UNITS[-1]:
            break
        amount /= 1024
    return f"{amount:.0f} B" if unit == "B" else f"{_three(amount)} {unit}"


def count(value: float | None) -> str:
    """A count, possibly a mean per step: ``1,234``, ``12.5``."""
    if not _given(value):
        return MISSING
    whole = round(value)
    return f"{whole:,}" if abs(value - whole) < 0.05 or abs(value) >= 100 else f"{value:,.1f}"


def percent(share: float | None) -> str:
    """A share of 0 to 1 as ``12.3 %``; the denominator stands beside it."""
    return f"{share * 100:.1f} %" if _given(share) else MISSING


def plural(number: int, noun: str) -> str:
    """``1 graph break``, ``3 graph breaks``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _given(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)


def _three(value: float) -> str:
    """Three significant digits at least, never an exponent."""
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{min(digits, 6)}f}".replace("-", "−")


def _times(value: float) -> str:
    return f"{value:.2f}" if value < 100 else f"{value:,.0f}"
