"""A comparison as JSON: the contract, printed."""

from __future__ import annotations

import json

from traceview.compare.contract import to_json
from traceview.compare.model import Comparison


def render(comparison: Comparison) -> str:
    """One JSON object with sorted keys; a figure that is no number is an error, never ``NaN``."""
    data = to_json(comparison)
    return json.dumps(data, sort_keys=True, indent=2, allow_nan=False, ensure_ascii=True)
