"""How long a script goes on after the last call of what it compiled."""

from __future__ import annotations

import polars as pl

from traceview.derive.outcome import CUT_SHORT
from traceview.rules._rows import Row, first_rank
from traceview.tables import Tables

#: Imports and the way out take seconds on a busy machine.
LEAST_SECONDS = 10.0
LEAST_SHARE = 0.50
_PASS = "baseline"


def came_to_its_end(run: Row) -> bool:
    """Whether the script of a row of ``runs`` ended by itself and without an error."""
    return not (run["error_type"] or run["exit_kind"] in CUT_SHORT or run["exit_code"])


def seconds_after(tables: Tables) -> float | None:
    """Of the all-eager pass, which nothing is measured in at the end: the larger part of it.

    None where it is less, where the script did not come to its own end, or where not every call
    was recorded by itself.
    """
    of_pass = pl.col("pass") == _PASS
    runs = first_rank(tables["runs"].filter(of_pass).to_dicts())
    calls = first_rank(tables["calls"].filter(of_pass & pl.col("outermost")).to_dicts())
    regions = first_rank(tables["regions"].filter(of_pass).to_dicts())
    if len(runs) != 1 or not calls or len(calls) != sum(row["outermost_calls"] for row in regions):
        return None
    (run,) = runs
    if not (came_to_its_end(run) and run["wall_s"]):
        return None
    ended = max(row["started_us"] + row["host_ms"] * 1e3 for row in calls)
    seconds: float = run["wall_s"] - (ended - run["started_us"]) / 1e6
    return seconds if seconds >= max(LEAST_SECONDS, LEAST_SHARE * run["wall_s"]) else None
