"""Who took part in a job: ranks, and processes whose rank is not known. Names, order, ranges."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

import polars as pl

from traceview.tables import Tables

#: Attempts of a job that only logs are left of: ``logs``, ``logs.2``, …
_ATTEMPT = re.compile(r"logs(?:\.(\d{1,6}))?")
_PROCESS = "p"


def attempts(tables: Tables) -> list[str]:
    """Passes that are attempts of a job, in order; none where the run was measured."""
    found = {name for name in tables["compiles"]["pass"].unique() if name}
    for name in ("jobs", "graph_breaks", "recompiles", "runs"):
        if tables.has(name):
            found |= {item for item in tables[name]["pass"].unique() if item}
    numbered = ((match, name) for name in found if (match := _ATTEMPT.fullmatch(name)))
    return [name for _, name in sorted((int(match[1] or 1), name) for match, name in numbered)]


def with_member(frame: pl.DataFrame) -> pl.DataFrame:
    """``frame`` with a column ``member``: the rank, or p4711 for a process without one."""
    rank = pl.col("rank").cast(pl.String)
    if not frame["rank"].has_nulls():
        return frame.with_columns(rank.alias("member"))
    pid = pl.col("pid") if "pid" in frame.columns else pl.lit(None, dtype=pl.Int64)
    if "compile_key" in frame.columns:
        named = pl.col("compile_key").str.extract(r":(\d+):[^:]*:[^:]*$", 1)
        pid = pl.coalesce(pid, named.cast(pl.Int64, strict=False))
    process = pl.lit(_PROCESS) + pl.coalesce(pid.cast(pl.String), pl.lit("?"))
    return frame.with_columns(pl.coalesce(rank, process).alias("member"))


def in_order(members: Iterable[str]) -> list[str]:
    """Ranks by number, then processes."""
    return sorted(set(members), key=_order)


def ranges(members: Iterable[str]) -> str:
    """``0-16,18-63,p4711``."""
    ordered = in_order(members)
    ranks = [int(member) for member in ordered if member.isdigit()]
    others = [member for member in ordered if not member.isdigit()]
    breaks = [index for index, (one, other) in enumerate(pairwise(ranks), 1) if other != one + 1]
    runs = [
        ranks[start:end] for start, end in pairwise([0, *breaks, len(ranks)]) if ranks[start:end]
    ]
    parts = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    return ",".join((*parts, *others))


def _order(member: str) -> tuple[bool, int, str]:
    return not member.isdigit(), int(member) if member.isdigit() else 0, member
