"""What rules build on: the front door of ``traceview.rules`` (docs/adding-a-rule.md).

    rows, first, first_rank, frame  a table of the measured pass: as dicts, or as polars has it
    user, compile_call, code_object a row's line of the user's own source; ``short`` names it
    Owners                          the same for events that happen inside a library
    about, about_region, about_calls    the functions that rows are about
    speedup, outcome, is_timed, slowdown    what was measured of eager and compiled steps
    step_ms, severity               what a step takes, and whether a cost is worth a warning
    from_row                        evidence with the raw line that a row was read from
    milliseconds, seconds, percent, ratio, plural, size, times, shorten     figures and texts as
                                    people read them

These names stay; whatever else ``traceview.rules`` holds may change. Rows are shared by all rules:
copy one before you change it.
"""

from __future__ import annotations

from traceview.derive.facts.places import (
    Owners,
    Spot,
    about,
    about_calls,
    about_region,
    code_object,
    compile_call,
    first_call,
    short,
    user,
)
from traceview.derive.facts.rows import Row, first, first_rank, frame, rows
from traceview.rules._costs import DEAR_SHARE as NOTABLE_SHARE
from traceview.rules._costs import is_timed, outcome, severity, step_ms
from traceview.rules._costs import measured as speedup
from traceview.rules._costs import ratio as slowdown
from traceview.rules._evidence import MOST_EVIDENCE, from_row
from traceview.rules.finding import (
    Confidence,
    Cost,
    Evidence,
    Finding,
    Location,
    Severity,
    Snippet,
)
from traceview.tables import Tables
from traceview.words.numbers import milliseconds, percent, plural, ratio, seconds, size, times
from traceview.words.text import shorten

__all__ = [
    "MOST_EVIDENCE",
    "NOTABLE_SHARE",
    "Confidence",
    "Cost",
    "Evidence",
    "Finding",
    "Location",
    "Owners",
    "Row",
    "Severity",
    "Snippet",
    "Spot",
    "Tables",
    "about",
    "about_calls",
    "about_region",
    "code_object",
    "compile_call",
    "first",
    "first_call",
    "first_rank",
    "frame",
    "from_row",
    "is_timed",
    "milliseconds",
    "outcome",
    "percent",
    "plural",
    "ratio",
    "rows",
    "seconds",
    "severity",
    "short",
    "shorten",
    "size",
    "slowdown",
    "speedup",
    "step_ms",
    "times",
    "user",
]
