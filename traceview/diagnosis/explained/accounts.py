"""What stands behind the accounting's categories, and the profiler's own cost."""

from __future__ import annotations

from traceview.diagnosis.explanation import AccountDetail, ProfilerCost
from traceview.diagnosis.focus import Focus
from traceview.tables import Tables

STANCES = ("eager", "compiled")
#: Rows of one category that a report has room for.
MOST_DETAILS = 12
#: A detail below this part of its step says nothing.
LEAST_PART = 1e-4


def details(tables: Tables, focus: Focus) -> tuple[AccountDetail, ...]:
    """The dearest details of every category, in order of stance, category and cost."""
    steps = {
        row.stance: row.timed_step_ms or row.profiled_step_ms for row in profiler(tables, focus)
    }
    found: dict[tuple[str, str], list[AccountDetail]] = {}
    for row in focus.rows(tables["account_details"]):
        if row["ms"] is None or row["ms"] < LEAST_PART * (steps.get(row["stance"]) or 0.0):
            continue
        detail = AccountDetail(
            stance=row["stance"],
            category=row["category"],
            what=row["what"],
            file=row["file"],
            line=row["line"],
            ms=row["ms"],
            count=row["count"],
            clock=row["clock"],
        )
        found.setdefault((row["stance"], row["category"]), []).append(detail)
    return tuple(
        detail
        for stance in STANCES
        for (of_stance, _), rows in found.items()
        if of_stance == stance
        for detail in sorted(rows, key=lambda row: -row.ms)[:MOST_DETAILS]
    )


def profiler(tables: Tables, focus: Focus) -> tuple[ProfilerCost, ...]:
    """One row a stance that was profiled, eager first."""
    windows = {row["stance"]: row for row in focus.rows(tables["step_counts"])}
    return tuple(
        ProfilerCost(
            stance=stance,
            profiled_step_ms=row["step_ms"],
            timed_step_ms=row["timed_step_ms"],
            beside_step_ms=row["beside_step_ms"],
            events=row["events"],
            event_cost_us=row["event_cost_us"],
            unexplained_ms=row["unexplained_ms"],
            exposed_communication_ms=row["exposed_communication_ms"],
            hidden_communication_ms=row["hidden_communication_ms"],
        )
        for stance in STANCES
        if (row := windows.get(stance)) is not None
    )
