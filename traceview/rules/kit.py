"""What rules build on: the front door of ``traceview.rules`` (docs/adding-a-rule.md).

    rows, first, first_rank, frame  a table of the measured pass: as dicts, or as polars has it
    user, line_of, compile_call, code_object    a row's line of the user's own source; ``short``
                                    names it
    Owners                          the same for events that happen inside a library
    about, about_region, about_calls    the functions that rows are about
    speedup, outcome, is_timed, slowdown    what was measured of eager and compiled steps
    step_ms, severity               what a step takes, and whether a cost is worth a warning
    severity_of_loss                the same of a loss that compiling may make up for
    compile_seconds                 what compiles took
    from_row                        evidence with the raw line that a row was read from
    torch_version, torch_before     the torch that ran: advice depends on it
    milliseconds, seconds, percent, ratio, plural, size, times, shorten     figures and texts as
                                    people read them

These names stay; whatever else ``traceview.rules`` holds may change. Rows are shared by all rules:
copy one before you change it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from traceview.derive.facts.places import (
    Owners,
    Spot,
    about,
    about_calls,
    about_region,
    code_object,
    compile_call,
    first_call,
    if_users,
    line_of,
    region_of,
    short,
    user,
)
from traceview.derive.facts.rows import (
    Row,
    first,
    first_rank,
    frame,
    is_timed,
    outcome,
    rows,
    step_ms,
)
from traceview.derive.facts.rows import measured as speedup
from traceview.derive.facts.rows import ratio as slowdown
from traceview.derive.processes import logged_versions
from traceview.rules.finding import Confidence, Cost, Evidence, Finding, Location, Severity, Snippet
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
    "compile_seconds",
    "first",
    "first_call",
    "first_rank",
    "frame",
    "from_row",
    "if_users",
    "is_timed",
    "line_of",
    "milliseconds",
    "outcome",
    "percent",
    "plural",
    "ratio",
    "region_of",
    "rows",
    "seconds",
    "severity",
    "severity_of_loss",
    "short",
    "shorten",
    "size",
    "slowdown",
    "speedup",
    "step_ms",
    "times",
    "torch_before",
    "torch_version",
    "user",
]

#: Enough to prove a finding; the tables hold the rest.
MOST_EVIDENCE = 5
#: Below 5 % of a step a change is hard to tell from noise in paired blocks (interval about ±3 %).
NOTABLE_SHARE = 0.05
#: On steps so long that 5 % is seldom reached, 0.05 ms is still what five launches cost …
_NOTABLE_MS = 0.05
#: … but what is below 1 % of a step is not seen in any measurement, nor what is less than the run's
#: own figure is uncertain by.
_UNSEEN_SHARE = 0.01
#: In a step that compiling slows down, a fifth of what is lost is worth a warning.
_LOST_SHARE = 0.20
_RELEASE = re.compile(r"(\d+)\.(\d+)")


def from_row(text: str, table: str, row: Row) -> Evidence:
    """``text`` with the raw line that the row was read from, where it has one."""
    return Evidence(text, table, row.get("raw_file"), row.get("raw_line"))


def severity(tables: Tables, ms_per_step: float | None) -> Severity:
    """Warning where it costs much, or where the cost is not known; else info."""
    eager, compiled = (step_ms(tables, stance) for stance in ("eager", "compiled"))
    if ms_per_step is None or compiled is None or not is_timed(tables):
        return "warning"
    found, unseen = speedup(tables), _UNSEEN_SHARE
    if found and found["speedup"] and found["speedup_low"] is not None:
        wide = float(found["speedup_high"] - found["speedup_low"])
        unseen = max(unseen, wide / 2 / float(found["speedup"]))
    notable = min(NOTABLE_SHARE * compiled, max(_NOTABLE_MS, unseen * compiled))
    lost = compiled - eager if eager is not None and outcome(tables) == "hurt" else 0.0
    if lost > 0:
        notable = min(notable, _LOST_SHARE * lost)
    return "warning" if ms_per_step >= notable else "info"


def severity_of_loss(tables: Tables, ms_per_step: float | None) -> Severity:
    """By the cost; information where compiling helped: the loss is less than the gain."""
    return "info" if outcome(tables) == "helped" else severity(tables, ms_per_step)


def compile_seconds(compiles: Iterable[Row]) -> float | None:
    """What these rows of ``compiles`` took besides logging; None where none was timed.

    Where torch does not say what the structured log took, that is in it.
    """
    spent = [
        max(0.0, row["duration_us"] - (row["logging_us"] or 0.0))
        for row in compiles
        if row["duration_us"] is not None
    ]
    return sum(spent) / 1e6 if spent else None


def torch_version(tables: Tables) -> tuple[int, int] | None:
    """(major, minor) of the torch that ran, None where it was not recorded."""
    recorded = [row["torch_version"] for row in rows(tables, "runs")]
    for text in (*recorded, logged_versions(tables).get("torch")):
        if found := _RELEASE.match(text or ""):
            return int(found[1]), int(found[2])
    return None


def torch_before(tables: Tables, release: tuple[int, int]) -> bool:
    """Whether a torch older than ``release`` ran; False where its version was not recorded."""
    version = tables.once(torch_version)
    return version is not None and version < release
