"""A line for each violation, or one line that says "passed"."""

from __future__ import annotations

from traceview.check.model import Checked
from traceview.reports.check.words import line, summary


def render(checked: Checked) -> str:
    """The lines; nothing that a run recorded can begin another one."""
    if checked.passed:
        return summary(checked)
    return "\n".join(
        [
            *(line(result) for result in checked.of("violated")),
            *(f"not checked: {line(result)}" for result in checked.of("not_checked")),
        ]
    )
