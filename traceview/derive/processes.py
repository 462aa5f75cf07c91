"""Which process of a pass ran the steps (scripts start workers and helpers), and its versions."""

from __future__ import annotations

import json
from typing import Any

import polars as pl

from traceview.tables import Tables

Row = dict[str, Any]


def main_processes(tables: Tables, pass_name: str) -> list[Row]:
    """Rows of ``runs``, one per rank in order of rank: the process that did most steps."""
    runs = tables["runs"].filter(pl.col("pass") == pass_name)
    blocks = tables["blocks"].filter(pl.col("pass") == pass_name)
    timed = dict(blocks.group_by("pid").agg(pl.col("steps").sum()).iter_rows())
    best: dict[int | None, Row] = {}
    for run in runs.iter_rows(named=True):
        seen = best.get(run["rank"])
        if seen is None or _work(run, timed) > _work(seen, timed):
            best[run["rank"]] = run
    return [best[rank] for rank in sorted(best, key=lambda rank: -1 if rank is None else rank)]


def of_process(frame: pl.DataFrame, run: Row) -> pl.DataFrame:
    """The rows of ``frame`` that belong to the process of ``run``."""
    pid = pl.col("pid").eq_missing(pl.lit(run["pid"], dtype=frame.schema["pid"]))
    return frame.filter((pl.col("pass") == run["pass"]) & pid)


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
        except ValueError:
            continue
        for name, value in known.items() if isinstance(known, dict) else ():
            if isinstance(value, str) and value:
                found.setdefault(name, value)
    return found
