"""Do compiled results agree with eager's, and if not, from where on?

Tables ``output_verdicts``, of callables, and ``output_differences``, of results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from traceview.parse.kineto.categories import TORCHS
from traceview.tables import Tables, from_rows, grouped

Row = Mapping[str, Any]
_REGION = ("pass", "rank", "pid", "region_id")
_RUNS = ("compiled", "fallback_random", "ladder")
#: Roundings of bfloat16 add up to some percent in deep models; more than that is no rounding.
WRONG_SHARE = 0.05
#: How many times eager's error no rounding makes where the compiler rounds as eager does, and the
#: part of the values from which on that counts: in low precision, and above.
_TIMES = 10.0
_LOW_SHARE, _SHARE = 0.02, 1e-3
_LOW = ("bfloat16", "float16")


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
        wrong = [row for row in unlike if row["run"] == "ladder"]
        stage = wrong[0]["backend"] if wrong else None
        drawn = trial["draws_random"] and compiled is False
        wavering = [row["output"] for row in unlike if row["run"] == "eager_again"]
        steady = [row for row in wrong if row["output"] not in wavering]
        backward = all((row["what"] == "gradient") for row in steady)
        verdicts.append(
            {
                **region,
                "outcome": outcome,
                "judged_run": "fallback_random" if drawn else "compiled",
                "ladder_agrees": agree["ladder"],
                "wrong_from": stage,
                "direction": ("backward" if backward else "forward") if steady else None,
                "wavering": wavering,
            }
        )
    return from_rows("output_verdicts", verdicts)


def output_differences(tables: Tables) -> pl.DataFrame | None:
    """What differs by more than rounding and random numbers; None where nothing was compared."""
    if not tables.has("output_verdicts"):
        return None
    checks = grouped(tables["output_checks"].iter_rows(named=True), *_REGION)
    found = []
    for verdict in tables["output_verdicts"].iter_rows(named=True):
        region = {key: verdict[key] for key in _REGION}
        mine = checks[tuple(region.values())]
        wrong = wrong_results(verdict, mine)
        if not wrong and verdict["wrong_from"] is None and verdict["outcome"] != "random":
            # What the script's own compiled code has wrong where no stage of the compiler alone has
            # it. Low precision is left out: there eager's roundings are what the stages differ by.
            wrong = [
                row
                for row in mine
                if row["run"] == verdict["judged_run"]
                and row["same"] is False
                and row["what"] is not None
                and row["dtype"] not in _LOW
                and row["output"] not in verdict["wavering"]
                and _beyond_rounding(row, WRONG_SHARE)
            ]
        backward = all(row["what"] == "gradient" for row in wrong)
        for row in wrong:
            error = relative_error(row)
            scale, eager = row["scale"], row["eager_rmse"]
            found.append(
                {
                    **{name: row[name] for name in ("what", "output", "max_abs_diff", "why")},
                    **region,
                    "stage": verdict["wrong_from"],
                    "direction": "backward" if backward else "forward",
                    "relative_error": None if scale is None else error,
                    "eager_error": eager / scale if scale and eager is not None else None,
                    "differing": row["differing"],
                }
            )
    return from_rows("output_differences", found)


def wrong_results(
    verdict: Row, checks: Sequence[Row], wrong_share: float = WRONG_SHARE
) -> list[Row]:
    """Rows of the first stage that is wrong which no rounding explains.

    Nothing where compiled itself is within the limits, and where only integers differ among
    floating-point results in a recording that knows no ties: each stage may put another of equal
    values first.
    """
    judged = [r for r in checks if r["run"] == verdict["judged_run"] and r["same"] is not None]
    stage = verdict["wrong_from"]
    if stage is None or all(row["same"] for row in judged):
        return []
    rungs = [row for row in checks if row["run"] == "ladder" and row["backend"] == stage]
    beyond = [row for row in rungs if row["same"] is False]
    floating = any(row["scale"] is not None for row in checks if row["run"] == "compiled")
    old = all(row["what"] is None for row in checks)
    if old and floating and all((row["dtype"] or "").startswith("int") for row in beyond):
        return []
    return [
        row
        for row in beyond
        if row["output"] not in verdict["wavering"] and _beyond_rounding(row, wrong_share)
    ]


def relative_error(row: Row) -> float:
    """Root mean square error as part of the values' own; 0 where there are no numbers.

    It is against float64, else the difference from eager.
    """
    error = row["rmse"] if row["rmse"] is not None else row["rms_diff"]
    return (error or 0.0) / row["scale"] if row["scale"] else 0.0


def no_rounding(error: float, noise: float, *, low_precision: bool) -> bool:
    """Whether a relative error is more than roundings explain, which make ``noise`` of it."""
    return error > (_LOW_SHARE if low_precision else _SHARE) and error > _TIMES * noise


def end_is_wrong(row: Row) -> bool:
    """Whether a row of ``end_checks`` is of compiled code that gives other results than eager."""
    error, noise = row["relative_error"], row["noise"]
    if not row["compared"] or error is None or noise is None:
        return False
    return no_rounding(error, noise, low_precision=row["low_precision"] is not False)


def is_recorded(row: Row) -> bool:
    """Whether it is the cudagraph that is wrong: what it replays, run once more, is right."""
    error, noise = row["without_cudagraph"], row["noise"]
    if error is None or noise is None:
        return False
    return not no_rounding(error, noise, low_precision=row["low_precision"] is not False)


def own_operators(row: Row) -> list[str]:
    """The user's operators in the cudagraphs of a row of ``end_checks``."""
    return [name for name in row["operators"] or () if name.partition(".")[0] not in TORCHS]


def _beyond_rounding(row: Row, wrong_share: float) -> bool:
    error = relative_error(row)
    if row["why"] or row["differing"] or error > wrong_share:
        return True
    if row["scale"] == 0.0:  # what is 0 in float64 has no part
        return (row["rms_diff"] or 0.0) > (row["limit"] or 0.0)
    if row["rmse"] is None or row["eager_rmse"] is None:
        return False
    noise = row["eager_rmse"] / row["scale"] if row["scale"] else 0.0
    return no_rounding(error, noise, low_precision=row["dtype"] in _LOW)
