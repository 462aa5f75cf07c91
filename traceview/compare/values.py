"""Values of a diagnosis that its model keeps as they came: a JSON file may hold anything there."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def number(row: Mapping[str, Any], key: str) -> float | None:
    """A finite number; None for anything else, and for what is no measurement (1e300)."""
    value = row.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) and abs(found) < 1e18 else None


def whole(row: Mapping[str, Any], key: str) -> int | None:
    """A whole number."""
    found = number(row, key)
    return None if found is None else int(found)


def text(row: Mapping[str, Any], key: str) -> str | None:
    """A string."""
    value = row.get(key)
    return value if isinstance(value, str) else None


def said(value: Any) -> str | None:  # noqa: ANN401 - any JSON value
    """Any value in words; None stays None."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list):
        return " ".join(str(item) for item in value)
    return str(value)
