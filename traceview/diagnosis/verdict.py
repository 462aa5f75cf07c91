"""The verdict's figures, and the rest of what table ``speedups`` says, for one process."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from traceview.diagnosis.focus import Focus
from traceview.diagnosis.model import Verdict
from traceview.tables import Tables

ENDINGS = {
    "stopped": "stopped by traceview when the plan was complete",
    "timeout": "ended by the time limit",
    "interrupted": "interrupted",
    "killed": "killed",
}


def verdict_of(tables: Tables, focus: Focus) -> tuple[Verdict, str | None]:
    """(the verdict without its sentence, the reason of an outcome that is no measured one)."""
    row = focus.first(tables["speedups"])
    if not row:
        return Verdict("not_measured", ""), "there are logs, but no timed run"
    row = _worst(tables, row)
    if row["outcome"] == "not_compiled":  # both sides ran the same code: their ratio says nothing
        row = {**row, "speedup": None, "speedup_low": None, "compiled_ms": None}
    low, high = row["speedup_low"], row["speedup_high"]
    verdict = Verdict(
        outcome=row["outcome"],
        sentence="",
        speedup=row["speedup"],
        speedup_interval=None if low is None or high is None else (low, high),
        eager_ms=row["eager_ms"],
        compiled_ms=row["compiled_ms"],
        clock=row["clock"],
        blocks=row["pairs_used"] or 0,
        blocks_measured=row["pairs_measured"] or 0,
        steps_timed=row["steps_timed"] or 0,
        basis=row["basis"] or "none",
        ended=ending(focus.first(tables["runs"])),
    )
    return verdict, row["reason"]


def ending(run: dict[str, Any]) -> str | None:
    """How the process ended, in a few words."""
    kind, error = run.get("exit_kind"), run.get("error_type")
    if error not in (None, "SystemExit") and (kind != "exit" or run["exit_code"]):
        file = run["error_file"]
        where = f" at {PurePath(file).name}:{run['error_line']}" if file else ""
        return f"raised {error}{where}"
    if kind == "exit":
        return f"ended by itself, exit code {run['exit_code']}"
    if kind == "signal":
        return f"ended by signal {run['exit_signal']}"
    return ENDINGS.get(str(kind))


def _worst(tables: Tables, row: dict[str, Any]) -> dict[str, Any]:
    """``row``, but failed if another rank of the same pass failed: one rank's end is the job's."""
    if row["outcome"] == "failed":
        return row
    for other in tables["speedups"].iter_rows(named=True):
        if other["outcome"] == "failed" and other["pass"] == row["pass"]:
            reason = f"rank {other['rank']}: {other['reason']}"
            return {**row, "outcome": "failed", "reason": reason}
    return row
