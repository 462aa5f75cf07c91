"""The functions that took longest to compile with their causes, and the ranks."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import polars as pl

from traceview.derive.compile_costs import PHASES
from traceview.derive.intervals import Interval, length
from traceview.derive.job.attempts import breaks
from traceview.diagnosis.focus import Code, Row, code_of, struct_of
from traceview.diagnosis.job.caches import misses, why
from traceview.diagnosis.job.model import JobCause, JobChain, JobFrame, RankRow
from traceview.diagnosis.job.subject import Subject, member_name
from traceview.words import names
from traceview.words.numbers import plural

MOST_FRAMES, MOST_RANKS = 40, 1024
#: A phase that fills this part of a function's seconds is named.
_PHASE = 0.5
_OUTCOMES = {"hit": "hits", "miss": "misses", "guard_miss": "misses"}


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
        sites = breaks(subject.tables, subject.job.name)
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
            share = f"{100 * phases[phase] / whole:.0f} % of it is {names.phase(phase)}"
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
