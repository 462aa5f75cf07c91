"""The result of a gate as GitHub workflow commands: an annotation for each violation.

Escaping is that of actions/toolkit (packages/core/src/command.ts): in a message ``%``, CR and LF,
in a property ``:`` and ``,`` besides.
"""

from __future__ import annotations

from traceview.check.model import Checked, Result
from traceview.reports.check.text import message, relative, summary
from traceview.words.text import one_line


def render(checked: Checked, root: str) -> str:
    """Commands, then a line for the log. ``root`` is the folder that GitHub knows files from."""
    return "\n".join(
        [
            *(_command("error", result, checked, root) for result in checked.of("violated")),
            *(_command("warning", result, checked, root) for result in checked.of("not_checked")),
            data(f"traceview check {summary(checked)}"),
        ]
    )


def data(text: str) -> str:
    """Text of a command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def attribute(text: str) -> str:
    """Value of a command's property."""
    return data(text).replace(":", "%3A").replace(",", "%2C")


def _command(level: str, result: Result, checked: Checked, root: str) -> str:
    properties = {"title": f"traceview: {one_line(result.limit, 80)}"}
    place = result.places[0] if result.places else checked.script
    file = relative(place, root, checked.cwd) if place else None
    if place and file is not None:
        line = str(max(1, place.line or 1))
        properties = {"file": one_line(file, 400), "line": line, **properties}
    said = message(result)
    if level == "warning":
        said = f"not checked: {said}"
    fields = ",".join(f"{name}={attribute(value)}" for name, value in properties.items())
    return f"::{level} {fields}::{data(said)}"
