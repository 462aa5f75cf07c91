"""The diagnosis as JSON text: the public contract (docs/diagnosis.md), nothing added."""

from __future__ import annotations

from traceview import contracts
from traceview.diagnosis import to_json
from traceview.diagnosis.model import Diagnosis


def render(diagnosis: Diagnosis) -> str:
    """One JSON object with sorted keys; a figure that is no number is null."""
    return contracts.text_of(to_json(diagnosis))
