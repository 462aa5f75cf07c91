"""What there is to read: arguments of the command line to sources, recognised by their content."""

from __future__ import annotations

from traceview.inputs.found import Damaged, Found, Skipped, as_text
from traceview.inputs.look import Kind
from traceview.inputs.search import find
from traceview.inputs.source import Source
from traceview.inputs.streams import READ_ERRORS, Counted, DamagedInput, Stream, damage_of

__all__ = [
    "READ_ERRORS",
    "Counted",
    "Damaged",
    "DamagedInput",
    "Found",
    "Kind",
    "Skipped",
    "Source",
    "Stream",
    "as_text",
    "damage_of",
    "find",
]
