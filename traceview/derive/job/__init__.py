"""Tables of all ranks of a job → tables about the job.

Made of every attempt that only logs are left of (passes ``logs``, ``logs.2``, …).

attempts    who took part, and the compiles of each; what the rest is made of
ranks       compile seconds by rank and by code object, failures, stragglers
waits       who waited while another rank compiled
late        compiles past the start, and the idle time of profiles that falls on compiles
divergence  what ranks of one program do differently; versions and settings that differ
keys        look-ups in the graph cache, and why one missed what another found
"""

from __future__ import annotations

from typing import Any

import polars as pl

from traceview.derive.job.attempts import attempt, attempts
from traceview.derive.job.divergence import config_rows, divergence_rows
from traceview.derive.job.keys import Components, Differences, look_ups
from traceview.derive.job.late import idle_rows, late_rows, traces
from traceview.derive.job.ranks import failure_rows, frame_rows, rank_rows, straggler_rows
from traceview.derive.job.waits import wait_rows
from traceview.tables import Tables, from_rows

__all__ = ["attempts", "earlier", "job_tables"]


def job_tables(tables: Tables) -> dict[str, pl.DataFrame]:
    """The tables; none where the run was measured, so that there is no job."""
    jobs = {name: attempt(tables, name) for name in attempts(tables)}
    looked = {name: list(look_ups(tables, job)) for name, job in jobs.items()}
    rows: dict[str, list[Any]] = {}
    components = Components(tables)
    for name, job in jobs.items():
        profiled = list(traces(tables, job))
        # Between the ranks of the attempt, and between it and the one before it.
        differences = Differences(components)
        differences.between_ranks(looked[name])
        for before, _ in earlier(tables, name)[-1:]:
            differences.between_attempts(looked.get(before, ()), looked[name])
        made = {
            "job_ranks": rank_rows(tables, job),
            "job_frames": frame_rows(job),
            "job_waits": wait_rows(tables, job),
            "job_divergence": divergence_rows(tables, job),
            "job_configs": config_rows(tables, job),
            "job_failures": failure_rows(job),
            "job_stragglers": straggler_rows(job, looked[name]),
            "late_compiles": late_rows(tables, job, profiled),
            "idle_on_compile": idle_rows(job, profiled),
            "cache_key_differences": differences.rows(name),
        }
        for table, found in made.items():
            rows.setdefault(table, []).extend(found)
    return {name: from_rows(name, found) for name, found in rows.items()}


def earlier(tables: Tables, name: str) -> list[tuple[str, int]]:
    """(pass, number) of the starts of the same job before ``name``, in order of time."""
    jobs = tables["jobs"]
    mine = jobs.filter(pl.col("pass") == name)
    if mine.is_empty():
        return []
    before = jobs.filter(pl.col("job") == mine["job"][0], pl.col("attempt") < mine["attempt"][0])
    return list(before.sort("attempt").select("pass", "attempt").iter_rows())
