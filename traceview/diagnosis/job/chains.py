"""Recompile chains and graph breaks of all ranks, those that are alike put together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import polars as pl

from traceview.diagnosis.focus import struct_of
from traceview.diagnosis.job.model import ChainLink, JobBreak, JobChain
from traceview.diagnosis.job.subject import (
    Row,
    Subject,
    cut,
)
from traceview.words import names

MOST_CHAINS, MOST_LINKS, MOST_BREAKS = 40, 40, 60

Link = tuple[object, ...]
_CODE = ("co_name", "co_filename", "co_firstlineno")
_WHAT = ("kind", "source_name", "dim", "old", "new")


def chains(subject: Subject) -> tuple[tuple[JobChain, ...], int]:
    """(one chain for each function and each set of ranks that went the same way, how many more)."""
    by_way: dict[tuple[object, ...], list[list[Row]]] = defaultdict(list)
    for (code, _), rows in _by_function(subject).items():
        way = tuple(tuple(row[name] for name in _WHAT) for row in rows)
        by_way[code, way].append(rows)
    found = sorted(
        (_chain(subject, ranks) for ranks in by_way.values()),
        key=lambda chain: (-(chain.seconds or 0.0), -chain.recompiles),
    )
    return tuple(found[:MOST_CHAINS]), max(0, len(found) - MOST_CHAINS)


def _by_function(subject: Subject) -> dict[tuple[Link, str], list[Row]]:
    """(code object, member) → the guards that decided, in order of time."""
    groups: dict[tuple[Link, str], list[Row]] = defaultdict(list)
    for row in subject.rows("recompile_causes"):
        groups[tuple(row[name] for name in _CODE), row["member"]].append(row)
    return groups


def _chain(subject: Subject, ways: list[list[Row]]) -> JobChain:
    """``ways``: the same recompiles on several ranks."""
    rows = ways[0]
    members = {way[0]["member"] for way in ways}
    keys = [(row["member"], row["compile_key"]) for way in ways for row in way]
    spans = [span for key in keys if (span := subject.spans.get(key)) is not None]
    seconds = [span.seconds for span in spans if span.seconds is not None]
    name, file, line = (rows[0][column] for column in _CODE)
    return JobChain(
        name=names.function(name),
        file=file,
        line=line,
        ranks=subject.ranks(members),
        recompiles=sum(map(len, ways)),
        seconds=sum(seconds) if seconds else None,
        limit_hit=any((member, (name, file, line)) in subject.limits for member in members),
        links=tuple(_links(subject, rows[:MOST_LINKS])),
        left_out=max(0, len(rows) - MOST_LINKS),
        co_name=name,
    )


def _links(subject: Subject, rows: list[Row]) -> Iterator[ChainLink]:
    for row in rows:
        span = subject.spans.get((row["member"], row["compile_key"]))
        yield struct_of(
            ChainLink,
            row,
            guard=cut(row["guard"]) or "",
            old=cut(row["old"], 200),
            new=cut(row["new"], 200),
            seconds=span.seconds if span else None,
            at_s=subject.at_s(span.started_us) if span else None,
        )


def breaks(subject: Subject) -> tuple[tuple[JobBreak, ...], int]:
    """(places where graphs break, the most frequent first; how many more)."""
    what = pl.coalesce("gb_type", pl.col("reason").str.split("\n").list.first())
    groups = (
        subject.frame("graph_breaks")
        .with_columns(what=what, compile=pl.concat_str("member", "compile_key", separator=" "))
        .group_by("user_file", "user_line", "what", maintain_order=True)
        .agg(
            pl.col("user_function").drop_nulls().first(),
            pl.col("gb_id").drop_nulls().first(),
            # The same break stands in the structured log, in the text log and once an attempt.
            pl.max_horizontal(pl.col("compile").drop_nulls().n_unique(), 1).first().alias("times"),
            pl.col("member").unique(),
        )
        .sort("times", descending=True, maintain_order=True)
    )
    found = [_break(subject, row) for row in groups.head(MOST_BREAKS).to_dicts()]
    return tuple(found), max(0, groups.height - MOST_BREAKS)


def _break(subject: Subject, row: Row) -> JobBreak:
    return JobBreak(
        file=row["user_file"],
        line=row["user_line"],
        function=row["user_function"],
        gb_id=row["gb_id"],
        reason=cut(row["what"]) or "not recorded",
        times=row["times"],
        ranks=subject.ranks(row["member"]),
        everywhere=len(row["member"]) == len(subject.job.members),
    )
