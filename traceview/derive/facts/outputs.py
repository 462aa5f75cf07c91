"""Table ``output_verdicts``: do compiled outputs agree with eager's, and if not, from where on?"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import polars as pl

from traceview.tables import Tables, from_rows

Row = dict[str, Any]
_REGION = ("pass", "rank", "pid", "region_id")


def output_verdicts(tables: Tables) -> pl.DataFrame | None:
    """One row for each of ``output_trials``; None where outputs were not compared."""
    if not tables.has("output_trials"):
        return None
    checks: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in tables["output_checks"].iter_rows(named=True):
        checks[tuple(row[key] for key in _REGION)].append(row)
    verdicts = []
    for trial in tables["output_trials"].iter_rows(named=True):
        region = {key: trial[key] for key in _REGION}
        mine = checks[tuple(region.values())] if trial["compared"] else []
        verdicts.append(region | _verdict(mine, draws_random=bool(trial["draws_random"])))
    return from_rows("output_verdicts", verdicts)


def _verdict(checks: list[Row], *, draws_random: bool) -> Row:
    compiled, random, ladder = (
        _agree(checks, run) for run in ("compiled", "fallback_random", "ladder")
    )
    outcome = {True: "agree", False: "differ", None: "not_compared"}[compiled]
    if not compiled and random:
        outcome = "random"
    elif not compiled and ladder:
        outcome = "rounding"
    unlike = [row for row in checks if row["same"] is False]
    return {
        "outcome": outcome,
        "judged_run": "fallback_random" if draws_random and compiled is False else "compiled",
        "ladder_agrees": ladder,
        "wrong_from": next((row["backend"] for row in unlike if row["run"] == "ladder"), None),
        "wavering": [row["output"] for row in unlike if row["run"] == "eager_again"],
    }


def _agree(checks: list[Row], run: str) -> bool | None:
    """Whether every output of that run is within the limit; None: there is no such run."""
    found = [row["same"] for row in checks if row["run"] == run]
    return all(same is True for same in found) if found else None
