"""The functions that took longest to compile with their causes, and the ranks."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import polars as pl

from traceview.derive.compile_costs import PHASES
from traceview.diagnosis.focus import struct_of
from traceview.diagnosis.job.caches import differences, why
from traceview.diagnosis.job.model import JobCause, JobChain, JobFrame, KeyDifference, RankRow
from traceview.diagnosis.job.subject import (
    Row,
    Subject,
    member_name,
)
from traceview.diagnosis.job.timeline import waits_by_rank
from traceview.words import names

MOST_FRAMES, MOST_RANKS = 40, 1024
#: A phase that fills this part of a function's seconds is named.
_PHASE = 0.5
_OUTCOMES = {"hit": "hits", "miss": "misses", "guard_miss": "misses"}

Code = tuple[str | None, str | None, int | None]


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
        self.lookups = _by_code(subject, "cache_events", _OUTCOMES)
        self.breaks = _breaks(subject)
        table = subject.rows("cache_key_differences")
        named = dict(
            zip(dict.fromkeys(r["difference"] for r in table), differences(subject), strict=True)
        )
        missed = [row for row in table if row["outcome"] != "hit" and row["seconds"]]
        self.differences: list[tuple[Row, KeyDifference]] = [
            (row, named[row["difference"]]) for row in missed
        ]

    def frame(self, row: Row) -> JobFrame:
        code = (row["co_name"], row["co_filename"], row["co_firstlineno"])
        looked = self.lookups.get(code)
        causes = sorted(self._causes(code, row), key=lambda cause: -(cause.seconds or 0.0))
        return struct_of(
            JobFrame,
            row,
            name=names.function(row["co_name"]),
            file=row["co_filename"],
            line=row["co_firstlineno"],
            most_rank=member_name(row["most_member"]),
            ranks=self.subject.ranks(row["ranks"]),
            graph_breaks=None if self.breaks is None else self.breaks[code],
            hits=looked["hits"] if looked else None,
            misses=looked["misses"] if looked else None,
            phases={name: row[name] or 0.0 for name in PHASES},
            causes=(*causes, *_phase(row)),
        )

    def _causes(self, code: Code, row: Row) -> Iterator[JobCause]:
        again = self.again[code]
        if row["recompiles"] and again:
            yield JobCause("recompiles", self._recompiled(code, row), again)
        about = f"{code[1]}:{code[2]}"
        for side, found in self.differences:
            if about in side["functions"]:
                missed = self.subject.ranks(side["ranks"]).text
                text = f"{names.cache(found.cache)} missed on {missed}: {why(found)}"
                yield JobCause("cache_miss", text, side["seconds"])
        if self.tuned[code] > 0.01 * row["rank_seconds"]:
            yield JobCause("autotuning", "kernels were tuned while it compiled", self.tuned[code])
        if row["failures"]:
            yield JobCause("failed", f"{row['failures']:,} of its compiles failed", None)

    def _recompiled(self, code: Code, row: Row) -> str:
        """What changed most often, as the guards say."""
        changed: Counter[str] = Counter()
        for chain in self.chains:
            if (chain.co_name, chain.file, chain.line) == code:
                for link in chain.links:
                    changed[link.source_name or link.kind] += chain.ranks.count
        times = f"{row['recompiles']:,} recompiles" if row["recompiles"] > 1 else "1 recompile"
        if not changed:
            return f"{times}; which guards failed was not recorded"
        return f"{times}: {', '.join(name for name, _ in changed.most_common(3))} changed"


def _phase(row: Row) -> Iterator[JobCause]:
    """The phase that fills most of it: where the time went, whatever the cause."""
    whole = sum(row[name] or 0.0 for name in PHASES)
    name = max(PHASES, key=lambda name: row[name] or 0.0)
    if whole and row[name] > _PHASE * whole:
        yield JobCause(
            "phase", f"{100 * row[name] / whole:.0f} % of it is {names.phase(name)}", row[name]
        )


def _by_code(subject: Subject, table: str, names: dict[str, str]) -> dict[Code, Counter[str]]:
    """Code object → look-ups in Inductor's graph cache, by how they ended."""
    events = subject.frame(table).filter(
        pl.col("cache") == "fx_graph", pl.col("event").is_in(list(names))
    )
    found: dict[Code, Counter[str]] = defaultdict(Counter)
    counted = events.group_by("member", "compile_key", "event").len()
    for member, key, event, count in counted.iter_rows():
        span = subject.spans.get((member, key))
        if span is not None:
            found[span.code][names[event]] += count
    return found


def _breaks(subject: Subject) -> Counter[Code] | None:
    """Code object → graph breaks on all ranks, one a compile and line; None: not recorded."""
    if not subject.tables.has("graph_breaks"):
        return None
    found: Counter[Code] = Counter()
    places = subject.frame("graph_breaks").unique(
        ["member", "compile_key", "user_file", "user_line"]
    )
    for member, key in places.select("member", "compile_key").iter_rows():
        span = subject.spans.get((member, key))
        if span is not None:
            found[span.code] += 1
    return found


def rank_rows(subject: Subject) -> tuple[tuple[RankRow, ...], int]:
    """(every rank in order, how many more)."""
    waiting, awaited = waits_by_rank(subject)
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
            waited_seconds=waiting.get(row["member"]),
            waited_for_seconds=awaited.get(row["member"]),
            straggler=row["member"] in slow,
        )
        for row in rows[:MOST_RANKS]
    )
    return found, max(0, len(rows) - MOST_RANKS)
