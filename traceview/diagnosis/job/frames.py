"""The functions that took longest to compile: causes, recompiles, graph breaks. And the ranks.

What is alike on several ranks is put together.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from operator import itemgetter

import polars as pl

from traceview.derive.compile_costs import PHASES
from traceview.derive.intervals import Interval, length
from traceview.derive.job.attempts import breaks as breaks_of
from traceview.diagnosis.focus import Code, Row, code_of, cut, struct_of
from traceview.diagnosis.job.caches import misses, why
from traceview.diagnosis.job.model import ChainLink, JobBreak, JobCause, JobChain, JobFrame, RankRow
from traceview.diagnosis.job.subject import TEXT, VALUE, Subject, member_name
from traceview.tables import grouped
from traceview.words import names
from traceview.words.numbers import plural

MOST_FRAMES, MOST_RANKS = 40, 1024
#: A phase that fills this part of a function's seconds is named.
_PHASE = 0.5
_OUTCOMES = {"hit": "hits", "miss": "misses", "guard_miss": "misses"}
MOST_CHAINS, MOST_LINKS, MOST_BREAKS = 40, 40, 60


def frames(subject: Subject, chains: Sequence[JobChain]) -> tuple[tuple[JobFrame, ...], int, float]:
    """(the slowest functions, how many more, their seconds)."""
    rows = subject.rows("job_frames")
    shown, rest = rows[:MOST_FRAMES], rows[MOST_FRAMES:]
    evidence = _Evidence(subject, chains)
    found = tuple(evidence.frame(row) for row in shown)
    return found, len(rest), sum(row["rank_seconds"] for row in rest)


class _Evidence:
    """What the causes of a function's seconds are read from."""

    def __init__(self, subject: Subject, chains: Sequence[JobChain]) -> None:
        self.subject = subject
        self.chains = chains
        self.again: dict[Code, float] = defaultdict(float)
        self.tuned: dict[Code, float] = defaultdict(float)
        for span in subject.job.spans:
            if span.again:
                self.again[span.code] += span.seconds or 0.0
            self.tuned[span.code] += (span.row["autotune_us"] or 0.0) / 1e6
        self.misses = misses(subject)
        # Look-ups in Inductor's graph cache, by how they ended.
        self.lookups: dict[Code, Counter[str]] = defaultdict(Counter)
        events = subject.frame("cache_events").filter(
            pl.col("cache") == "fx_graph", pl.col("event").is_in(list(_OUTCOMES))
        )
        counted = events.group_by("member", "compile_key", "event").len()
        for member, key, event, count in counted.iter_rows():
            if found := subject.spans.get((member, key)):
                self.lookups[found.code][_OUTCOMES[event]] += count
        # Graph breaks on all ranks, one a compile and line.
        self.breaks: Counter[Code] = Counter()
        places = ["member", "compile_key", "file", "line"]
        sites = breaks_of(subject.tables, subject.job.name)
        for member, key, *_ in sites.select(places).unique().iter_rows():
            if found := subject.spans.get((member, key)):
                self.breaks[found.code] += 1

    def frame(self, row: Row) -> JobFrame:
        code = code_of(row)
        looked = self.lookups.get(code)
        known = self.subject.tables.has("break_sites")
        causes = sorted(self._causes(code, row), key=lambda cause: -(cause.seconds or 0.0))
        phases = {name: row[name] or 0.0 for name in PHASES}
        # The phase that fills most of it is where the time went, whatever the cause.
        phase, whole = max(phases, key=lambda name: phases[name]), sum(phases.values())
        if phases[phase] > _PHASE * whole:
            part = f"{100 * phases[phase] / whole:.0f} % of the compile time"
            share = f"{names.phase(phase)}, {part}"
            causes.append(JobCause("phase", share, row[phase]))
        return struct_of(
            JobFrame,
            row,
            name=names.function(row["co_name"]),
            file=row["co_filename"],
            line=row["co_firstlineno"],
            most_rank=member_name(row["most_member"]),
            ranks=self.subject.ranks(row["ranks"]),
            graph_breaks=self.breaks[code] if known else None,
            hits=looked["hits"] if looked else None,
            misses=looked["misses"] if looked else None,
            phases=phases,
            causes=tuple(causes),
        )

    def _causes(self, code: Code, row: Row) -> Iterator[JobCause]:
        again = self.again[code]
        if row["recompiles"] and again:
            changed: Counter[str] = Counter()
            for chain in self.chains:
                if (chain.co_name, chain.file, chain.line) == code:
                    for link in chain.links:
                        changed[link.source_name or link.kind] += chain.ranks.count
            said = f": {', '.join(name for name, _ in changed.most_common(3))} changed"
            unknown = "; which guards failed was not recorded"
            times = plural(row["recompiles"], "recompile")
            yield JobCause("recompiles", times + (said if changed else unknown), again)
        about = f"{code[1]}:{code[2]}"
        for side, found in self.misses:
            if about in side["functions"]:
                missed = self.subject.ranks(side["ranks"]).text
                text = f"{names.cache(found.cache)} missed on {missed}: {why(found)}"
                yield JobCause("cache_miss", text, side["seconds"])
        if self.tuned[code] > 0.01 * row["rank_seconds"]:
            yield JobCause("autotuning", "kernels were tuned while it compiled", self.tuned[code])
        if row["failures"]:
            yield JobCause("failed", f"{row['failures']:,} of its compiles failed", None)


def rank_rows(subject: Subject) -> tuple[tuple[RankRow, ...], int]:
    """(every rank in order, how many more)."""
    waiting: dict[str, list[Interval]] = defaultdict(list)
    awaited: dict[str, list[Interval]] = defaultdict(list)
    for waiter, member, span in subject.waits:
        waiting[waiter].append(span)
        awaited[member].append(span)
    slow = set(subject.frame("job_stragglers")["member"])
    rows = subject.rows("job_ranks")
    found = tuple(
        struct_of(
            RankRow,
            row,
            rank=member_name(row["member"]),
            phases={name: row[name] for name in PHASES if row[name] is not None},
            first_at_s=subject.at_s(row["first_us"]),
            last_at_s=subject.at_s(row["last_us"]),
            waited_seconds=_seconds(waiting.get(row["member"])),
            waited_for_seconds=_seconds(awaited.get(row["member"])),
            straggler=row["member"] in slow,
        )
        for row in rows[:MOST_RANKS]
    )
    return found, max(0, len(rows) - MOST_RANKS)


def _seconds(spans: list[Interval] | None) -> float | None:
    return length(spans) / 1e6 if spans else None


def chains(subject: Subject) -> tuple[tuple[JobChain, ...], int]:
    """(one chain for each function and each set of ranks that went the same way, how many more)."""
    # The order of rows follows the names of files: the lowest rank stands for those it is alike.
    order = {member: number for number, member in enumerate(subject.job.members)}
    causes = subject.rows("recompile_causes")
    ordered = sorted(causes, key=lambda row: order.get(row["member"], len(order)))
    on_rank = grouped(ordered, by=lambda row: (code_of(row), row["member"]))
    what = itemgetter("kind", "source_name", "dim", "old", "new")
    by_way = grouped(on_rank.values(), by=lambda rows: (code_of(rows[0]), *map(what, rows)))
    known, found = subject.spans, []
    for ways in by_way.values():  # the same recompiles of one function on several ranks
        spans = [[known.get((row["member"], row["compile_key"])) for row in way] for way in ways]
        seconds = [
            s.seconds for way in spans for s in way if s is not None and s.seconds is not None
        ]
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
        chain = JobChain(
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
        found.append(chain)
    found.sort(key=lambda chain: (-(chain.seconds or 0.0), -chain.recompiles))
    return tuple(found[:MOST_CHAINS]), max(0, len(found) - MOST_CHAINS)


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
