"""Numbers with their units, one way for each; None is "not recorded".

Three significant digits everywhere, in the unit that reads best, never an exponent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime, timezone
from typing import TypeGuard

MISSING = "not recorded"
_ORDINALS = (
    *("first", "second", "third", "fourth", "fifth"),
    *("sixth", "seventh", "eighth", "ninth", "tenth"),
)
_BYTE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def milliseconds(value: float | None) -> str:
    """A duration given in ms, in the unit that reads best: ``15.2 µs``, ``0.794 ms``."""
    if not given(value):
        return MISSING
    if value != 0 and abs(value) < 0.09995:
        return f"{_three(value * 1000)} µs"
    if abs(value) >= 1000:
        return f"{_three(value / 1000)} s"
    return f"{_three(value)} ms"


def seconds(value: float | None) -> str:
    """A duration given in s: ``350 ms``, ``1.27 s``, ``212 s``."""
    if not given(value):
        return MISSING
    if abs(value) < 1:
        return milliseconds(value * 1000)
    return f"{_three(value)} s"


def fixed(value: float | None, digits: int = 3) -> str:
    """A number for a column whose heading names the unit: ``0.794``; the decimals line up."""
    return _unsigned_zero(f"{value:,.{digits}f}") if given(value) else MISSING


def difference(before: float | None, after: float | None, digits: int = 3) -> str:
    """``after - before`` with its sign, for a column whose heading names the unit."""
    if not given(before) or not given(after):
        return MISSING
    return _unsigned_zero(f"{after - before:+,.{digits}f}")


def signed(ms: float | None) -> str:
    """A change in ms with its sign: ``−3.05 ms``, ``+0.214 ms``."""
    if not given(ms):
        return MISSING
    return f"+{milliseconds(ms)}" if ms > 0 else milliseconds(ms)


def rate(value: float | None, unit: str) -> str:
    """A rate or a latency in its unit: ``4,010 GB/s``, ``0.42 TFLOP/s``, ``2.1 µs``."""
    if not given(value):
        return MISSING
    said = f"{value:,.0f}" if abs(value) >= 1000 else _three(value)
    return f"{said} {'µs' if unit == 'us' else unit}"


def short(value: float) -> str:
    """A power of ten on an axis: ``0.01``, ``1``, ``1,000``, ``1e7``."""
    return f"{value:,.6g}" if 1e-4 <= value < 1e6 else f"1e{math.log10(value):.0f}"


def cell(value: float | None, digits: int = 3) -> str:
    """``fixed`` for a table whose caption says what a dash means."""
    return fixed(value, digits) if given(value) else "–"


def figure(value: float | None) -> str:
    """Three significant digits, for a column whose figures differ by orders of magnitude."""
    if not given(value):
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else _three(value)


def in_unit(value: float | None, unit: str | None) -> str:
    """A figure of a comparison or a limit in its unit; three digits where it has none."""
    return _UNITS.get(unit or "", figure)(value)


def flop(value: float | None) -> str:
    """Floating-point operations: ``137 GFLOP``."""
    if not given(value):
        return MISSING
    amount = float(value)
    for unit in ("FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP"):
        if abs(amount) < 1000 or unit == "TFLOP":
            break
        amount /= 1000
    return f"{_three(amount)} {unit}"


def ratio(value: float | None) -> str:
    """A speedup: ``5.76×``, ``0.98×``, ``123×``."""
    return f"{_times(value)}×" if given(value) else MISSING


def ratio_interval(interval: tuple[float, float] | None) -> str:
    """Both ends of an interval of speedups: ``5.71–5.80×``."""
    if interval is None or not all(given(end) for end in interval):
        return MISSING
    low, high = interval
    return f"{_times(low)}–{_times(high)}×"


def size(value: float | None) -> str:
    """Bytes in binary units: ``1.27 GiB``."""
    if not given(value):
        return MISSING
    amount = float(value)
    for unit in _BYTE_UNITS:
        if abs(amount) < 1024 or unit == _BYTE_UNITS[-1]:
            break
        amount /= 1024
    return f"{amount:.0f} B" if unit == "B" else f"{_three(amount)} {unit}"


def size_cell(value: float | None) -> str:
    """``size`` for a table whose caption says what a dash means."""
    return size(value) if given(value) else "–"


def count(value: float | None) -> str:
    """A count, possibly a mean per step: ``1,234``, ``12.5``."""
    if not given(value):
        return MISSING
    whole = round(value)
    return f"{whole:,}" if abs(value - whole) < 0.05 or abs(value) >= 100 else f"{value:,.1f}"


def percent(share: float | None) -> str:
    """A share of 0 to 1: ``79 %``, ``3.2 %``; the text says of what."""
    if not given(share):
        return MISSING
    return f"{share * 100:.0f} %" if share >= 0.1 or share == 0 else f"{share * 100:.1f} %"


def change(ratio: float) -> str:
    """A ratio of after to before as per cent, without the sign of per cent: ``−22``, ``+5``."""
    percents = (ratio - 1) * 100
    return f"{percents:+,.0f}".replace("-", "−") if abs(percents) >= 0.5 else "0"


def plural(number: int, noun: str) -> str:
    """``1 graph break``, ``3 graph breaks``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def ordinal(number: int) -> str:
    """``second``; from the eleventh on ``12th``."""
    if number <= len(_ORDINALS):
        return _ORDINALS[number - 1]
    teens = number % 100 in (11, 12, 13)
    return f"{number}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def times(number: int) -> str:
    """How often: ``once``, ``twice``, ``7 times``."""
    return {1: "once", 2: "twice"}.get(number, f"{number:,} times")


def together(*values_ms: float) -> tuple[str, ...]:
    """Durations to be compared: all in the unit that the smallest of them reads best in."""
    small = min(abs(value) for value in values_ms)
    if 0 < small < 0.09995 and max(map(abs, values_ms)) < 1:
        return tuple(f"{_three(value * 1000)} µs" for value in values_ms)
    if max(map(abs, values_ms)) >= 1000 > small >= 1:
        return tuple(f"{_three(value)} ms" for value in values_ms)
    return tuple(map(milliseconds, values_ms))


def iso_time(time_us: object) -> str | None:
    """ISO 8601, UTC, to the second; None for what is missing, zero or no sane time."""
    if not isinstance(time_us, int | float) or not time_us:
        return None
    try:
        moment = datetime.fromtimestamp(time_us / 1e6, timezone.utc)
    except (OverflowError, OSError, ValueError):
        return None
    return moment.isoformat(timespec="seconds")


def given(value: float | None) -> TypeGuard[float]:
    """Whether there is a figure to write: nothing that is measured comes near 1e18."""
    return value is not None and abs(value) < 1e18


def _unsigned_zero(said: str) -> str:
    """A written figure with a true minus, and none on zero."""
    return said.replace("-", "−") if said.strip("+-0.,") else said.lstrip("+-")


def _three(value: float) -> str:
    """Three significant digits at least, never an exponent."""
    value = float(f"{value:.3g}") if abs(value) < 1000 else value
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{min(digits, 6)}f}".replace("-", "−")


def _times(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}" if value >= 0.1 else _three(value)


_UNITS: dict[str, Callable[[float | None], str]] = {
    "ratio": ratio, "ms": milliseconds, "s": seconds, "count": count, "bytes": size, "steps": count,
}  # fmt: skip
