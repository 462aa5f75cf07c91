"""The way into the generated code, and the guards on it."""

from __future__ import annotations

from traceview.diagnosis.explanation import CallPart, GuardCost
from traceview.diagnosis.focus import Focus
from traceview.tables import Tables

MOST_PARTS = 60
MOST_COMPILES = 20
MOST_OF_COMPILE = 8


def call_path(tables: Tables, focus: Focus) -> tuple[CallPart, ...]:
    """Parts, dearest first."""
    rows = sorted(focus.rows(tables["call_path"]), key=lambda row: -(row["ms"] or 0.0))
    return tuple(
        CallPart(
            part=row["part"],
            region_id=row["region_id"],
            compile_id=row["compile_id"],
            calls=row["calls"],
            us_per_call=row["us_per_call"],
            ms=row["ms"],
            guards=row["guards"],
            ns_per_guard=row["ns_per_guard"],
            us_less_profiler=row["us_less_profiler"],
            entries=row["entries"],
        )
        for row in rows[:MOST_PARTS]
    )


def guard_costs(tables: Tables, focus: Focus) -> tuple[GuardCost, ...]:
    """Each compile's set, most guards first, and after it what most of them read."""
    by_compile: dict[str, list[GuardCost]] = {}
    for row in focus.rows(tables["guard_costs"]):
        whole = row["kind"] is None and row["source_name"] is None
        mine = by_compile.setdefault(row["compile_key"], [])
        if (whole or row["source_name"] is not None) and len(mine) <= MOST_OF_COMPILE:
            mine.append(
                GuardCost(
                    compile_id=row["compile_id"],
                    co_name=row["co_name"],
                    guard=row["guard"],
                    kind=row["kind"],
                    source_name=row["source_name"],
                    file=row["file"],
                    line=row["line"],
                    guards=row["guards"],
                    us=row["us"],
                    how=row["how"],
                )
            )
    sets = sorted(
        (rows for rows in by_compile.values() if rows), key=lambda rows: -(rows[0].guards or 0)
    )
    return tuple(guard for rows in sets[:MOST_COMPILES] for guard in rows)
