"""Table ``speedups``: did a step get faster, by how much, and when does compiling pay for itself.

Per rank of the measured pass (``cold``). Speedup: median over usable block pairs of eager over
compiled milliseconds per step; interval: 95 % percentile bootstrap over the pairs (bootstrap.py).
Both weigh a pair by its length (pairs.py).
Break-even: compile seconds over the seconds that a step saves, rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import polars as pl
from msgspec.structs import asdict

from traceview.derive.callables import MEASURED_PASS, timed
from traceview.derive.figures import Figures, figures
from traceview.derive.intervals import union
from traceview.derive.outcome import measured_outcome, outcome
from traceview.derive.processes import Row, main_processes, of_process
from traceview.tables import Tables, from_rows

#: A script that ended by itself after this many seconds, or whose loops take that long, compiling
#: not counted, shows the real job's length: a short script does not become a real job because the
#: machine compiles slowly.
REAL_JOB_S = 60.0


def speedups(tables: Tables, pairs: pl.DataFrame, settings: Mapping[str, float]) -> pl.DataFrame:
    """Table ``speedups``; ``settings`` may hold ``job_steps``."""
    rows = []
    for run in main_processes(tables, MEASURED_PASS):
        kinds = timed(tables, of_process(pairs, run), run)
        measured = kinds[0].figures if kinds else figures(tables, pairs, run)
        word, reason = outcome(tables, run, measured)
        compile_s = compile_seconds(tables, run)
        own = {"steps_seen": kinds[0].steps} if len(kinds) > 1 else {}
        steps, steps_from = job_length(run | own, compile_s, settings)
        if steps is None and kinds and run["exit_kind"] != "exit":
            # By the loops around the step; a script of seconds may be a shortened one. Seconds in
            # the faster of eager and compiled: a job that compiling makes that short is no longer
            # than its author wanted to wait for it.
            times = [ms for ms in (measured.eager_ms, measured.compiled_ms) if ms is not None]
            anchored = pl.col("region_id").eq_missing(pl.lit(kinds[0].anchor, dtype=pl.Int32))
            looped = of_process(tables["job_lengths"], run).filter(anchored)["steps"]
            shortest = min(times, default=0.0)
            if not looped.is_empty() and looped[0] * shortest / 1e3 > REAL_JOB_S:
                steps, steps_from = looped[0], "loops"
        # The first call of the region whose calls are the steps; else of the first region called.
        called = of_process(tables["regions"], run).drop_nulls("first_call_ms")
        anchor = pl.col("is_anchor").fill_null(False)
        if len(kinds) > 1:
            anchor = pl.col("region_id").eq_missing(pl.lit(kinds[0].anchor, dtype=pl.Int32))
        called = called.sort(anchor, descending=True, maintain_order=True)
        rows.append(
            {
                **{key: run[key] for key in ("pass", "rank", "pid")},
                **asdict(measured),
                "outcome": word,
                "reason": reason,
                "compile_s": compile_s,
                "break_even_steps": break_even(compile_s, measured),
                "job_steps": steps,
                "job_steps_from": steps_from,
                "first_call_ms": None if called.is_empty() else called["first_call_ms"][0],
            }
        )
    return from_rows("speedups", rows)


def compile_seconds(tables: Tables, run: Row) -> float | None:
    """Host seconds in which the process of ``run`` compiled anything; None if not recorded.

    The union of the callbacks' spans, so that nested and concurrent compiles count once; without
    callbacks, the union of the compiles of the structured log.
    """
    spans = of_process(tables["compile_intervals"], run)
    compiles = of_process(tables["compiles"], run)
    duration = pl.col("duration_us")
    if spans.height:
        compiles, duration = spans, pl.col("duration_ms") * 1e3
    elif compiles.is_empty():
        recorded = tables.has("compile_intervals") or tables.has("compiles")
        return 0.0 if recorded else None
    elif compiles["duration_us"].is_null().all():
        return None  # the only one never ended
    start = pl.col("started_us")
    covered = union(compiles.select(start=start, end=start + duration).drop_nulls())
    return float((covered["end"] - covered["start"]).sum()) / 1e6


def break_even(compile_s: float | None, measured: Figures) -> int | None:
    """Steps after which compiling has paid for itself; None if it never does or is not known."""
    eager, compiled, low = measured.eager_ms, measured.compiled_ms, measured.speedup_low
    if compile_s is None or eager is None or compiled is None or low is None:
        return None
    if low <= 1.0 or eager <= compiled or measured_outcome(measured) == "hurt":
        return None
    return math.ceil(compile_s * 1000.0 / (eager - compiled))


def job_length(
    run: Row, compile_s: float | None, settings: Mapping[str, float]
) -> tuple[int | None, str | None]:
    """(steps of the real job, where that is known from); (None, None) if it is not known."""
    if settings.get("job_steps"):
        return int(settings["job_steps"]), "option"
    by_itself = run["exit_kind"] == "exit" and not run["exit_code"] and not run["error_type"]
    ran = (run["wall_s"] or 0.0) - (compile_s or 0.0)
    if by_itself and ran > REAL_JOB_S and run["steps_seen"]:
        return int(run["steps_seen"]), "observed"
    return None, None
