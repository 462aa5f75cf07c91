"""The tables of a job → its story."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone

import polars as pl

from traceview.derive.intervals import length
from traceview.derive.job import attempts as attempts_of
from traceview.diagnosis.job.caches import caches
from traceview.diagnosis.job.chains import breaks, chains
from traceview.diagnosis.job.diverging import divergences
from traceview.diagnosis.job.files import files
from traceview.diagnosis.job.frames import frames, rank_rows
from traceview.diagnosis.job.model import Attempt, Job
from traceview.diagnosis.job.notes import notes
from traceview.diagnosis.job.sentence import worded
from traceview.diagnosis.job.subject import Row, Subject
from traceview.diagnosis.job.timeline import compile_of, timeline
from traceview.diagnosis.job.troubles import (
    autotuning,
    configs,
    failures,
    idle,
    late,
    stragglers,
    waits,
)
from traceview.diagnosis.job.words import members_of, ranks
from traceview.tables import Tables

MOST_ATTEMPTS = 50


def job_story(tables: Tables, name: str) -> Job | None:
    """The story of attempt ``name``; None where the tables hold no job."""
    if not tables.has("job_ranks") or name not in attempts_of(tables):
        return None
    story = _story(tables, Subject.of(tables, name), attempts(tables, name))
    return worded(story)


def _story(tables: Tables, subject: Subject, known: tuple[Attempt, ...]) -> Job:
    recompiled, more_chains = chains(subject)
    dear, more, rest = frames(subject, recompiled)
    by_rank, more_ranks = rank_rows(subject)
    waited, more_waits = waits(subject)
    broken, more_breaks = breaks(subject)
    apart, more_apart = divergences(subject)
    differing, more_configs = configs(subject)
    failed, more_failures = failures(subject)
    read, more_files = files(tables)
    lists = ("recompiles", "waits", "breaks", "divergences", "configs", "failures", "files")
    counts = (
        more_chains, more_waits, more_breaks, more_apart, more_configs, more_failures, more_files,
    )  # fmt: skip
    return Job(
        sentence="",
        attempt=next(found for found in known if found.shown),
        compile=compile_of(subject),
        timeline=timeline(subject),
        frames=dear,
        frames_left_out=more,
        frames_left_out_seconds=rest,
        ranks=by_rank,
        ranks_left_out=more_ranks,
        waits=waited,
        stragglers=stragglers(subject),
        caches=caches(subject),
        recompiles=recompiled,
        breaks=broken,
        divergences=apart,
        late=late(subject),
        configs=differing,
        failures=failed,
        autotuning=autotuning(subject),
        idle=idle(subject),
        attempts=known[:MOST_ATTEMPTS],
        files=read,
        left_out={name: count for name, count in zip(lists, counts, strict=True) if count},
        notes=tuple(notes(subject)),
    )


def attempts(tables: Tables, shown: str) -> tuple[Attempt, ...]:
    """Every attempt, in order of job and time."""
    rows = {row["pass"]: row for row in tables["jobs"].to_dicts()}
    found = [
        _attempt(tables, name, rows.get(name, {}), name == shown) for name in attempts_of(tables)
    ]
    return tuple(sorted(found, key=lambda one: (one.job or "", one.attempt, one.pass_name)))


def _attempt(tables: Tables, name: str, row: Row, shown: bool) -> Attempt:
    mine = tables["job_ranks"].filter(pl.col("pass") == name)
    members = mine["member"].to_list()
    job = row.get("job")
    return Attempt(
        pass_name=name,
        job=None if job is None else str(job),
        attempt=row.get("attempt") or 1,
        ranks=ranks([member for text in members for member in members_of(text)]),
        began_at=_when(row.get("began_us") or mine["first_us"].min()),
        ended_at=_when(row.get("ended_us") or mine["last_us"].max()),
        files=row.get("files"),
        compile_seconds=_seconds(tables, name),
        failures=int(mine["failures"].sum()),
        shown=shown,
    )


def _seconds(tables: Tables, name: str) -> float | None:
    """Seconds in which at least one rank compiled."""
    timed = tables["compiles"].filter(pl.col("pass") == name)
    pairs = list(_spans(timed.drop_nulls(["started_us", "duration_us"])))
    return length(pairs) / 1e6 if pairs else None


def _spans(compiles: pl.DataFrame) -> Iterator[tuple[int, int]]:
    for start, duration in compiles.select("started_us", "duration_us").iter_rows():
        yield int(start), int(start + duration)


def _when(time_us: object) -> str | None:
    """ISO 8601, UTC, to the second; None where it is not known or no sane time."""
    if not isinstance(time_us, int | float) or not time_us:
        return None
    try:
        moment = datetime.fromtimestamp(time_us / 1e6, timezone.utc)
    except (OverflowError, OSError, ValueError):
        return None
    return moment.isoformat(timespec="seconds")
