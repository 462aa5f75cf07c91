"""Do compiled outputs agree with eager's? What ``--compare-outputs`` found."""

from __future__ import annotations

import msgspec

from traceview.diagnosis.focus import Focus
from traceview.diagnosis.model import ComparedOutputs, OutputCheck
from traceview.tables import Tables


def compared_outputs(tables: Tables, focus: Focus) -> tuple[ComparedOutputs, ...]:
    """One entry for each compiled callable that was called; nothing where none was asked for."""
    names = {row["region_id"]: row["name"] for row in focus.rows(tables["regions"])}
    checks = focus.rows(tables["output_checks"])
    outcomes = {row["region_id"]: row["outcome"] for row in focus.rows(tables["output_verdicts"])}
    return tuple(
        ComparedOutputs(
            region_id=trial["region_id"],
            name=names.get(trial["region_id"]) or "",
            outcome=outcomes[trial["region_id"]],
            why=trial["why"],
            reference=trial["reference"],
            reference_why=trial["reference_why"],
            draws_random=bool(trial["draws_random"]),
            checks=tuple(
                msgspec.convert(row, OutputCheck)
                for row in checks
                if row["region_id"] == trial["region_id"]
            ),
        )
        for trial in focus.rows(tables["output_trials"])
    )
