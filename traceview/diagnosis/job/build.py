"""The tables of a job → its story."""

from __future__ import annotations

import polars as pl

from traceview.derive.intervals import length
from traceview.derive.job import attempts as attempts_of
from traceview.derive.job.attempts import with_member
from traceview.diagnosis.focus import struct_of
from traceview.diagnosis.job.caches import caches
from traceview.diagnosis.job.diverging import divergences
from traceview.diagnosis.job.frames import breaks, chains, frames, rank_rows
from traceview.diagnosis.job.model import Attempt, Job, JobFile, Ranks
from traceview.diagnosis.job.sentence import notes, worded
from traceview.diagnosis.job.subject import Subject, members_of, ranks
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
from traceview.tables import Tables
from traceview.words.numbers import iso_time

MOST_ATTEMPTS, MOST_FILES = 50, 100


def job_story(tables: Tables, name: str) -> Job | None:
    """The story of attempt ``name``; None where the tables hold no job."""
    if not tables.has("job_ranks") or name not in attempts_of(tables):
        return None
    subject, known = Subject.of(tables, name), attempts(tables, name)
    recompiled, more_chains = chains(subject)
    slowest, more_frames, rest = frames(subject, recompiled)
    by_rank, more_ranks = rank_rows(subject)
    waited, more_waits = waits(subject)
    broken, more_breaks = breaks(subject)
    apart, more_apart = divergences(subject)
    differing, more_configs = configs(subject)
    failed, more_failures = failures(subject)
    read, more_files = files(tables)
    left_out = {
        "recompiles": more_chains,
        "waits": more_waits,
        "breaks": more_breaks,
        "divergences": more_apart,
        "configs": more_configs,
        "failures": more_failures,
        "files": more_files,
    }
    story = Job(
        sentence="",
        attempt=next(found for found in known if found.shown),
        compile=compile_of(subject),
        timeline=timeline(subject),
        frames=slowest,
        frames_left_out=more_frames,
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
        left_out={name: count for name, count in left_out.items() if count},
        notes=tuple(notes(subject)),
    )
    return worded(story)


def attempts(tables: Tables, shown: str) -> tuple[Attempt, ...]:
    """Every attempt, in order of job and time."""
    rows = {row["pass"]: row for row in tables["jobs"].to_dicts()}
    found = []
    for name in attempts_of(tables):
        row = rows.get(name, {})
        mine = tables["job_ranks"].filter(pl.col("pass") == name)
        timed = tables["compiles"].filter(pl.col("pass") == name)
        spans = timed.select("started_us", "duration_us").drop_nulls().iter_rows()
        pairs = [(int(start), int(start + duration)) for start, duration in spans]
        found.append(
            Attempt(
                pass_name=name,
                job=None if row.get("job") is None else str(row["job"]),
                attempt=row.get("attempt") or 1,
                ranks=ranks([one for text in mine["member"] for one in members_of(text)]),
                began_at=iso_time(row.get("began_us") or mine["first_us"].min()),
                ended_at=iso_time(row.get("ended_us") or mine["last_us"].max()),
                files=row.get("files"),
                compile_seconds=length(pairs) / 1e6 if pairs else None,
                failures=int(mine["failures"].sum()),
                shown=name == shown,
            )
        )
    return tuple(sorted(found, key=lambda one: (one.job or "", one.attempt, one.pass_name)))


def files(tables: Tables) -> tuple[tuple[JobFile, ...], int]:
    """A row a file, unreadable and damaged ones first; and how many are left out."""
    rows = (
        with_member(tables["inputs"])
        .group_by("name", "url", maintain_order=True)
        .agg(
            pl.col("kind", "size_bytes", "bytes_read", "rows", "damaged", "error").first(),
            pl.col("records").sum().alias("records"),
            pl.col("records").is_null().all().alias("uncounted"),
            pl.col("member").unique(maintain_order=True).alias("members"),
            pl.col("rank", "pid").is_not_null().any().name.suffix("_known"),
        )
    )
    order = (pl.col("error").is_null(), -pl.col("damaged").fill_null(0), pl.col("name"))
    found = rows.sort(*order).head(MOST_FILES).iter_rows(named=True)
    shown = []
    for row in found:
        members = row["members"] if row["rank_known"] or row["pid_known"] else []
        shown.append(
            struct_of(
                JobFile,
                row,
                kind=row["kind"] or "unknown",
                ranks=ranks(members) if members else Ranks(0, "not recorded"),
                records=None if row["uncounted"] else row["records"],
            )
        )
    return tuple(shown), max(0, rows.height - MOST_FILES)
