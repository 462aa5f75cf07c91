"""Check one run against limits, and against a baseline if there is one."""

from __future__ import annotations

from traceview.check.gate import check
from traceview.check.limits import Limits
from traceview.check.model import Checked, Result

__all__ = ["Checked", "Limits", "Result", "check"]
