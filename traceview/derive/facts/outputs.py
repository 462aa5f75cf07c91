"""Table ``output_verdicts``: do compiled outputs agree with eager's, and if not, from where on?"""

from __future__ import annotations

from typing import Any

import polars as pl

from traceview.tables import Tables, from_rows, grouped

Row = dict[str, Any]
_REGION = ("pass", "rank", "pid", "region_id")
_RUNS = ("compiled", "fallback_random", "ladder")


def output_verdicts(tables: Tables) -> pl.DataFrame | None:
    """One row for each of ``output_trials``; None where outputs were not compared."""
    if not tables.has("output_trials"):
        return None
    checks = grouped(tables["output_checks"].iter_rows(named=True), *_REGION)
    verdicts = []
    for trial in tables["output_trials"].iter_rows(named=True):
        region = {key: trial[key] for key in _REGION}
        mine = checks[tuple(region.values())] if trial["compared"] else []
        # Whether every output of a run is within the limit; None: there is no such run.
        same = {run: [row["same"] for row in mine if row["run"] == run] for run in _RUNS}
        agree = {run: all(found) if found else None for run, found in same.items()}
        compiled = agree["compiled"]
        outcome = {True: "agree", False: "differ", None: "not_compared"}[compiled]
        if not compiled and agree["fallback_random"]:
            outcome = "random"
        elif not compiled and agree["ladder"]:
            outcome = "rounding"
        unlike = [row for row in mine if row["same"] is False]
        wrong = (row["backend"] for row in unlike if row["run"] == "ladder")
        drawn = trial["draws_random"] and compiled is False
        verdicts.append(
            {
                **region,
                "outcome": outcome,
                "judged_run": "fallback_random" if drawn else "compiled",
                "ladder_agrees": agree["ladder"],
                "wrong_from": next(wrong, None),
                "wavering": [row["output"] for row in unlike if row["run"] == "eager_again"],
            }
        )
    return from_rows("output_verdicts", verdicts)
