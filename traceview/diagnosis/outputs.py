"""Do compiled outputs agree with eager's? What ``--compare-outputs`` found."""

from __future__ import annotations

from typing import Any

from msgspec.structs import fields

from traceview.diagnosis.focus import Focus
from traceview.diagnosis.model import ComparedOutputs, OutputCheck
from traceview.tables import Tables

Row = dict[str, Any]


def compared_outputs(tables: Tables, focus: Focus) -> tuple[ComparedOutputs, ...]:
    """One entry a compiled callable that was called; nothing where none was asked for."""
    names = {row["region_id"]: row["name"] for row in focus.rows(tables["regions"])}
    checks = focus.rows(tables["output_checks"])
    return tuple(
        _compared(told, names.get(told["region_id"]) or "", checks)
        for told in focus.rows(tables["output_trials"])
    )


def _compared(told: Row, name: str, checks: list[Row]) -> ComparedOutputs:
    mine = [row for row in checks if row["region_id"] == told["region_id"]]
    columns = [field.name for field in fields(OutputCheck)]
    return ComparedOutputs(
        region_id=told["region_id"],
        name=name,
        outcome=_outcome(mine) if told["compared"] else "not_compared",
        why=told["why"],
        reference=told["reference"],
        reference_why=told["reference_why"],
        draws_random=bool(told["draws_random"]),
        checks=tuple(OutputCheck(**{name: row[name] for name in columns}) for row in mine),
    )


def _outcome(checks: list[Row]) -> str:
    """``agree``, ``random`` (with eager's random numbers they do), ``rounding`` (with its roundings
    too), ``differ``, or ``not_compared`` where there is no compiled run."""
    if not _same(checks, "compiled"):
        if _same(checks, "fallback_random"):
            return "random"
        if _same(checks, "ladder"):
            return "rounding"
    return {True: "agree", False: "differ", None: "not_compared"}[_same(checks, "compiled")]


def _same(checks: list[Row], run: str) -> bool | None:
    """Whether every output of that run is within the limit; None: there is no such run."""
    found = [row["same"] for row in checks if row["run"] == run]
    return all(same is True for same in found) if found else None
