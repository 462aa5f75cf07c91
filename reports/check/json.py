"""The result of a gate as JSON: the contract, printed."""

from __future__ import annotations

import json

from traceview.check.contract import to_json
from traceview.check.model import Checked


def render(checked: Checked) -> str:
    """One JSON object with sorted keys; a figure that is no number is an error, never ``NaN``."""
    data = to_json(checked)
    return json.dumps(data, sort_keys=True, indent=2, allow_nan=False, ensure_ascii=True)
