"""Figures and names as a person reads them."""

from __future__ import annotations

CATEGORIES = {
    "gemm": "matrix multiplication",
    "attention": "attention",
    "convolution": "convolution",
    "elementwise": "elementwise operators",
    "reduction": "reductions",
    "normalization": "normalisation",
    "indexing": "indexing",
    "optimizer": "the optimizer",
    "copy": "copies",
    "memset": "memory fills",
    "communication": "communication",
    "other": "other operators",
}


def milliseconds(value: float) -> str:
    """Three significant digits, or three decimals below 1 ms: 0.050 ms, 1.23 ms, 345 ms, 12.3 s."""
    if value >= 10_000:
        return f"{value / 1000:.3g} s"
    if value >= 100:
        return f"{value:.0f} ms"
    if value < 0.01:
        return f"{value * 1000:.3g} µs"
    return f"{value:.3f} ms" if value < 1 else f"{value:.3g} ms"


def ratio(value: float) -> str:
    """6.9, 1.04, 12: two decimals where the second one matters."""
    return f"{value:.2f}" if value < 2 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def count(value: float) -> str:
    """35, or 35.5 where a step does not always do the same."""
    return f"{value:.0f}" if abs(value - round(value)) < 0.05 else f"{value:.1f}"


def category(name: str) -> str:
    """``gemm`` as ``matrix multiplication``; an unknown name without its underscores."""
    return CATEGORIES.get(name, name.replace("_", " "))


def plural(number: int, noun: str) -> str:
    """1 step, 2,000 steps."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
