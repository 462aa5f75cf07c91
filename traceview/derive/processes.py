"""Which process of a pass ran the steps (scripts start workers and helpers), and its versions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import polars as pl

from traceview.json_errors import NOT_JSON
from traceview.tables import Tables, having
from traceview.torchtext.frames import TRACED, parse_traceback

Row = dict[str, Any]


def main_processes(tables: Tables, pass_name: str) -> list[Row]:
    """Rows of ``runs``, one per rank in order of rank: the process that did most steps."""
    runs, blocks = (having(tables[name], **{"pass": pass_name}) for name in ("runs", "blocks"))
    timed = dict(blocks.group_by("pid").agg(pl.col("steps").sum()).iter_rows())
    best: dict[int | None, Row] = {}
    for run in runs.iter_rows(named=True):
        seen = best.get(run["rank"])
        if seen is None or _work(run, timed) > _work(seen, timed):
            best[run["rank"]] = run
    return [best[rank] for rank in sorted(best, key=lambda rank: -1 if rank is None else rank)]


def fails_in_eager(tables: Tables, run: Mapping[str, Any]) -> Row | None:
    """The all-eager process of ``run``'s rank where it ended with the same error as ``run``.

    While it compiles, torch raises an error of its own: it quotes the lines, of which the innermost
    raises the script's in eager, or that error.
    """
    eager = all_eager(tables, run)
    if not eager or not eager["error_type"] or not run["error_type"]:
        return None
    # torch.compile itself raises in that pass, too.
    refused = of_process(tables["regions"], eager)["error"].drop_nulls()
    if any(error.startswith(f"{eager['error_type']}: ") for error in refused):
        return None
    raised = eager["error_file"], eager["error_line"]
    message = run["error_message"] or ""
    quoted = parse_traceback(message.partition(TRACED)[2])
    traced = any((frame.file, frame.line) == raised for frame in quoted)
    said = (eager["error_message"] or "").strip().partition("\n")[0]
    wrapped = f"{eager['error_type']}: {said}" in message and bool(said)
    return eager if traced or wrapped or eager["error_type"] == run["error_type"] else None


def all_eager(tables: Tables, run: Mapping[str, Any]) -> Row | None:
    """The all-eager process of ``run``'s rank."""
    passes = main_processes(tables, "baseline")
    return next((row for row in passes if row["rank"] == run["rank"]), None)


def lives_in_eager(tables: Tables, run: Mapping[str, Any]) -> Row | None:
    """That process where it got as far as ``run`` did and did not fail."""
    eager = all_eager(tables, run)
    if not eager or (eager["steps_seen"] or 0) < (run["steps_seen"] or 0):
        return None
    return eager if eager["exit_kind"] == "stopped" or eager["exit_code"] == 0 else None


def of_process(frame: pl.DataFrame, run: Row) -> pl.DataFrame:
    """The rows of ``frame`` that belong to the process of ``run``."""
    return having(frame, **{"pass": run["pass"]}, pid=run["pid"])


def _work(run: Row, timed: dict[int, int]) -> tuple[int, int]:
    return timed.get(run["pid"], 0), run["steps_seen"] or 0


def logged_versions(tables: Tables, *of: pl.Expr) -> dict[str, str]:
    """torch, python, cuda, triton, torch_commit, as far as the rows ``of`` table configs have them.

    That is what is known of versions where nothing was collected. They become known bit by bit:
    the first that is logged counts.
    """
    found: dict[str, str] = {}
    rows = tables["configs"].filter(pl.col("section") == "versions", *of)
    for text in rows["settings"].drop_nulls().unique(maintain_order=True):
        try:
            known = json.loads(text)
        except NOT_JSON:
            continue
        for name, value in known.items() if isinstance(known, dict) else ():
            if isinstance(value, str) and value:
                found.setdefault(name, value)
    return found
