"""The result of a gate as JSON: the contract, printed."""

from __future__ import annotations

from traceview import contracts
from traceview.check.model import Checked, to_json


def render(checked: Checked) -> str:
    """One JSON object with sorted keys; a figure that is no number is null."""
    return contracts.text_of(to_json(checked))
