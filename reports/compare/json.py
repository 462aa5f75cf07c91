"""A comparison as JSON: the contract, printed."""

from __future__ import annotations

from traceview import contracts
from traceview.compare.model import Comparison, to_json


def render(comparison: Comparison) -> str:
    """One JSON object with sorted keys; a figure that is no number is null."""
    return contracts.text_of(to_json(comparison))
