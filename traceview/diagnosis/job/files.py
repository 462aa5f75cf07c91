"""Which files a post-mortem read, and what of them it could not read."""

from __future__ import annotations

from typing import Any

import polars as pl

from traceview.derive.job.attempts import with_member
from traceview.diagnosis.job.model import JobFile, Ranks
from traceview.diagnosis.job.words import ranks
from traceview.tables import Tables

MOST_FILES = 100


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
    return tuple(map(_file, found)), max(0, rows.height - MOST_FILES)


def _file(row: dict[str, Any]) -> JobFile:
    known = row["rank_known"] or row["pid_known"]
    members = row["members"] if known else []
    return JobFile(
        name=row["name"] or "?",
        kind=row["kind"] or "unknown",
        ranks=ranks(members) if members else Ranks(0, "not recorded"),
        size_bytes=row["size_bytes"],
        bytes_read=row["bytes_read"],
        records=None if row["uncounted"] else row["records"],
        rows=row["rows"],
        damaged=row["damaged"] or 0,
        error=row["error"],
    )
