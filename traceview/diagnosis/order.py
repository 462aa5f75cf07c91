"""Findings in the order of what they cost, all in one clock: seconds over the whole job."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from traceview.rules.finding import Finding
from traceview.tables import Tables

#: The job's length is told, or so many steps were seen as the least, or it is assumed.
Known = Literal["told", "seen", "assumed"]
#: Steps that a job is taken to have at least where its length is not known.
ASSUMED_STEPS = 1000
#: The gravest first.
SEVERITIES = ("error", "warning", "info")


def job_steps(tables: Tables) -> tuple[int, Known]:
    """(steps of the job, how that is known)."""
    known = [value for value in tables["speedups"]["job_steps"] if value]
    if known:
        return int(known[0]), "told"
    settings = dict(tables["settings"].select("name", "value").iter_rows())
    assumed = int(settings.get("assumed_steps") or ASSUMED_STEPS)
    seen = max((steps or 0 for steps in tables["runs"]["steps_seen"]), default=0)
    return (seen, "seen") if seen > assumed else (assumed, "assumed")


def seconds_over_job(finding: Finding, steps: int) -> float:
    """What it costs a job of ``steps`` steps, with what follows from it; 0 where not known."""
    cost = finding.whole_cost or finding.cost
    return (cost.ms_per_step or 0.0) * steps / 1000.0 + (cost.seconds or 0.0)


def ordered(findings: Iterable[Finding], steps: int) -> tuple[Finding, ...]:
    """Dearest first; at the same cost by severity, then by rule and place, so that it is stable.

    A script's failure explains all else, so errors without a known cost are not put behind costs.
    Information comes last, since its cost is no reason to do anything, but for what ``weighs``.
    """

    def key(finding: Finding) -> tuple[bool, bool, float, int, str, str, int]:
        cost = seconds_over_job(finding, steps)
        place = finding.location
        return (
            not (finding.severity == "error" and cost == 0.0),
            finding.severity == "info" and not finding.weighs,
            -cost,
            SEVERITIES.index(finding.severity),
            finding.code,
            place.file if place else "",
            place.line if place else 0,
        )

    return tuple(sorted(findings, key=key))
