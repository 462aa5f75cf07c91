"""The diagnosis as JSON text: the public contract (docs/diagnosis.md), nothing added."""

from __future__ import annotations

import json

from traceview.diagnosis import to_json
from traceview.diagnosis.model import Diagnosis


def render(diagnosis: Diagnosis) -> str:
    """One JSON object with sorted keys; a figure that is no number is an error, never ``NaN``."""
    data = to_json(diagnosis)
    return json.dumps(data, sort_keys=True, indent=2, allow_nan=False, ensure_ascii=True)
