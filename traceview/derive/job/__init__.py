"""Tables of all ranks of a job → tables that tell its story.

Made of every attempt that only logs are left of (passes ``logs``, ``logs.2``, …); ``spans`` holds
what the rest is made of.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import polars as pl

from traceview.derive.job.configs import config_rows
from traceview.derive.job.divergence import divergence_rows
from traceview.derive.job.failures import failure_rows
from traceview.derive.job.idle import idle_rows
from traceview.derive.job.keys import Differences
from traceview.derive.job.late import late_rows
from traceview.derive.job.lookups import Components, LookUp, look_ups
from traceview.derive.job.members import attempts
from traceview.derive.job.ranks import frame_rows, rank_rows
from traceview.derive.job.spans import Attempt, attempt
from traceview.derive.job.stragglers import straggler_rows
from traceview.derive.job.traces import traces
from traceview.derive.job.waits import wait_rows
from traceview.tables import Tables, from_rows

__all__ = ["attempts", "earlier", "job_tables"]


def job_tables(tables: Tables) -> dict[str, pl.DataFrame]:
    """The story tables; none where the run was measured and no job is told of."""
    jobs = [attempt(tables, name) for name in attempts(tables)]
    if not jobs:
        return {}
    looked = {job.name: list(look_ups(tables, job)) for job in jobs}
    rows: dict[str, list[Any]] = {}
    for job in jobs:
        for name, found in _of_one(tables, job, looked[job.name]).items():
            rows.setdefault(name, []).extend(found)
    rows["cache_key_differences"] = list(_key_differences(tables, looked))
    return {name: from_rows(name, found) for name, found in rows.items()}


def _of_one(
    tables: Tables, job: Attempt, looked: list[LookUp]
) -> dict[str, Iterable[dict[str, Any]]]:
    profiled = list(traces(tables, job))
    return {
        "job_ranks": rank_rows(tables, job),
        "job_frames": frame_rows(job),
        "job_waits": wait_rows(tables, job),
        "job_divergence": divergence_rows(tables, job),
        "job_configs": config_rows(tables, job),
        "job_failures": failure_rows(job),
        "job_stragglers": straggler_rows(job, looked),
        "late_compiles": late_rows(tables, job, profiled),
        "idle_on_compile": idle_rows(job, profiled),
    }


def _key_differences(tables: Tables, looked: dict[str, list[LookUp]]) -> Iterable[dict[str, Any]]:
    """Between the ranks of each attempt, and between each attempt and the one before it."""
    components = Components(tables)
    for name, found in looked.items():
        differences = Differences(components)
        differences.between_ranks(found)
        for before, _ in earlier(tables, name)[-1:]:
            differences.between_attempts(looked.get(before, ()), found)
        yield from differences.rows(name)


def earlier(tables: Tables, name: str) -> list[tuple[str, int]]:
    """(pass, number) of the starts of the same job before ``name``, in order of time."""
    jobs = tables["jobs"]
    mine = jobs.filter(pl.col("pass") == name)
    if mine.is_empty():
        return []
    before = jobs.filter(pl.col("job") == mine["job"][0], pl.col("attempt") < mine["attempt"][0])
    return list(before.sort("attempt").select("pass", "attempt").iter_rows())
