"""Recompile chains and graph breaks of all ranks, those that are alike put together."""

from __future__ import annotations

from collections import defaultdict

import polars as pl

from traceview.derive.job.attempts import breaks as breaks_of
from traceview.diagnosis.focus import Code, Row, code_of, cut, struct_of
from traceview.diagnosis.job.model import ChainLink, JobBreak, JobChain
from traceview.diagnosis.job.subject import TEXT, VALUE, Subject
from traceview.words import names

MOST_CHAINS, MOST_LINKS, MOST_BREAKS = 40, 40, 60


def chains(subject: Subject) -> tuple[tuple[JobChain, ...], int]:
    """(one chain for each function and each set of ranks that went the same way, how many more)."""
    on_rank: dict[tuple[Code, str], list[Row]] = defaultdict(list)
    # The order of rows follows the names of files: the lowest rank stands for those it is alike.
    order = {member: number for number, member in enumerate(subject.job.members)}
    causes = subject.rows("recompile_causes")
    for row in sorted(causes, key=lambda row: order.get(row["member"], len(order))):
        on_rank[code_of(row), row["member"]].append(row)
    by_way: dict[tuple[object, ...], list[list[Row]]] = defaultdict(list)
    for (code, _), rows in on_rank.items():
        what = ("kind", "source_name", "dim", "old", "new")
        by_way[code, tuple(tuple(row[name] for name in what) for row in rows)].append(rows)
    found = sorted(
        (_chain(subject, ranks) for ranks in by_way.values()),
        key=lambda chain: (-(chain.seconds or 0.0), -chain.recompiles),
    )
    return tuple(found[:MOST_CHAINS]), max(0, len(found) - MOST_CHAINS)


def _chain(subject: Subject, ways: list[list[Row]]) -> JobChain:
    """``ways``: the same recompiles of one function on several ranks."""
    known = subject.spans
    spans = [[known.get((row["member"], row["compile_key"])) for row in way] for way in ways]
    seconds = [s.seconds for way in spans for s in way if s is not None and s.seconds is not None]
    members = {way[0]["member"] for way in ways}
    code = name, file, line = code_of(ways[0][0])
    links = tuple(
        struct_of(
            ChainLink,
            row,
            guard=cut(row["guard"], TEXT) or "",
            old=cut(row["old"], VALUE),
            new=cut(row["new"], VALUE),
            seconds=span.seconds if span else None,
            at_s=subject.at_s(span.started_us) if span else None,
        )
        for row, span in zip(ways[0][:MOST_LINKS], spans[0], strict=False)
    )
    return JobChain(
        name=names.function(name),
        file=file,
        line=line,
        ranks=subject.ranks(members),
        recompiles=sum(map(len, ways)),
        seconds=sum(seconds) if seconds else None,
        limit_hit=any((member, code) in subject.limits for member in members),
        links=links,
        left_out=len(ways[0]) - len(links),
        co_name=name,
    )


def breaks(subject: Subject) -> tuple[tuple[JobBreak, ...], int]:
    """(places where graphs break, the most frequent first; how many more)."""
    what = pl.coalesce("gb_type", pl.col("reason").str.split("\n").list.first())
    groups = (
        breaks_of(subject.tables, subject.job.name)
        .with_columns(reason=what, compile=pl.struct("member", "compile_key"))
        .group_by("file", "line", "reason", maintain_order=True)
        .agg(
            pl.col("function", "gb_id").drop_nulls().first(),
            pl.col("compile").n_unique().alias("times"),
            pl.col("member").unique(),
        )
        .sort("times", descending=True, maintain_order=True)
    )
    found = (
        struct_of(
            JobBreak,
            row,
            reason=cut(row["reason"], TEXT) or "not recorded",
            ranks=subject.ranks(row["member"]),
            everywhere=len(row["member"]) == len(subject.job.members),
        )
        for row in groups.head(MOST_BREAKS).to_dicts()
    )
    return tuple(found), max(0, groups.height - MOST_BREAKS)
