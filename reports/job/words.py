"""How every report words a job: its figures, causes, ranks and what went wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import msgspec

from traceview.diagnosis.job.model import (
    Attempt,
    Job,
    JobCause,
    JobFrame,
    RankRow,
    Ranks,
    Side,
)
from traceview.diagnosis.model import Diagnosis
from traceview.reports import words
from traceview.words import names
from traceview.words import numbers as fmt

#: What a span of the timeline is: words, colour class.
SPANS = {
    "compile": ("compiling", "gemm"),
    "compile_alone": ("compiling, and no other rank", "redu"),
    "wait": ("waiting for a rank that compiles", "idle-sync"),
    "failed": ("a compile that failed", "more"),
}
_NUMBER = re.compile(r"\d{1,9}")


def span(kind: str) -> tuple[str, str]:
    """Words and colour class of a kind of span."""
    return SPANS.get(kind, (kind.replace("_", " "), "rest"))


def order(rank: str) -> tuple[bool, int, str]:
    """Ranks by number; what has none comes last."""
    found = _NUMBER.search(rank)
    return found is None or not rank.startswith("rank"), int(found[0]) if found else 0, rank


def bare(rank: str) -> str:
    """``7`` of ``rank 7``."""
    return rank.removeprefix("rank ")


def who(ranks: Ranks) -> str:
    """``ranks 0–3``, with their number where the words are long."""
    counted = ranks.count > 4 and not ranks.text.startswith("all ")
    return f"{ranks.text} ({fmt.count(ranks.count)})" if counted else ranks.text


def attempt(row: Attempt) -> str:
    """``job 1, attempt 2``."""
    return f"job {row.job}, attempt {row.attempt}" if row.job else f"attempt {row.attempt}"


def facts(job: Job) -> list[tuple[str, str, str]]:
    """Name, value and small print of the figures of a job; unknown ones are left out."""
    c = job.compile
    others = f"median {fmt.seconds(c.median_seconds)}" if c.ranks > 1 else ""
    found = (
        ("Compiling", c.seconds, "while any rank compiles"),
        (f"Only {c.most_rank}", c.alone_seconds if c.ranks > 1 else None, "no other compiling"),
        (f"Longest: {c.most_rank}", c.most_seconds, others),
        ("Others waited", c.waited_seconds, c.waited_basis or ""),
        ("All ranks", c.rank_seconds if c.ranks > 1 else None, "added up"),
    )
    timed = [(name, fmt.seconds(value), small) for name, value, small in found if value is not None]
    ranks = f"{fmt.count(c.ranks_compiling)} of {fmt.plural(c.ranks, 'rank')}"
    return [*timed, ("Compiles", fmt.count(c.compiles), ranks)]


def cause(row: JobCause) -> str:
    """``cache missed, 9.8 s: …``."""
    seconds = f", {fmt.seconds(row.seconds)}" if row.seconds else ""
    said = f": {row.text}" if row.text else ""
    return f"{names.word(names.JOB_CAUSES, row.kind)}{seconds}{said}"


def line(file: str | None, number: int | None, diagnosis: Diagnosis) -> str:
    """``train.py:41``; of a file elsewhere only the last folder: ``…/jobs/train.py:41``."""
    said = words.line(file, number, diagnosis)
    parts = said.rsplit("/", 2)
    return "/".join(("…", *parts[-2:])) if said.startswith("/") and len(parts) == 3 else said


def frame(row: JobFrame, diagnosis: Diagnosis) -> str:
    """``forward at train.py:41``: the user's own line where it is known."""
    file, number = (row.user_file, row.user_line) if row.user_file else (row.file, row.line)
    return f"{row.name} at {line(file, number, diagnosis)}" if file else row.name


def sides(rows: Sequence[Side]) -> list[tuple[str, str | None, str]]:
    """Who, how the look-up ended, and the value; the attempt where the sides are not of one."""
    several = len({row.pass_name for row in rows}) > 1
    return [
        (
            f"{who(row.ranks)} ({row.pass_name})" if several and row.pass_name else who(row.ranks),
            row.outcome,
            "not recorded" if row.value is None else row.value,
        )
        for row in rows
    ]


class RankColumn(msgspec.Struct, frozen=True):
    """A column of the table of ranks: heading, small print below it, and the figures of a cell."""

    name: str
    small: str
    figures: Callable[[RankRow], tuple[float | None, ...]]
    digits: int = 0

    def cell(self, row: RankRow) -> str:
        """The figures; a dash for one that was not recorded."""
        return " / ".join(fmt.cell(figure, self.digits) for figure in self.figures(row))


def rank_columns(job: Job) -> tuple[list[RankColumn], list[str]]:
    """Columns that hold a figure for some rank, and the names of those that are zero or not
    known for all of them."""
    phases = dict.fromkeys(name for row in job.ranks for name in row.phases)
    columns = [
        RankColumn("Compiling", "s", lambda row: (row.seconds,), 2),
        *map(_phase_column, phases),
        RankColumn("Compiles", "all / again", lambda row: (row.compiles, row.recompiles)),
        RankColumn("Breaks", "", lambda row: (row.graph_breaks,)),
        RankColumn("Failed", "", lambda row: (row.failures,)),
        RankColumn("Caches", "hit / miss / bypass", lambda r: (r.hits, r.misses, r.bypasses)),
        RankColumn(
            "Waited", "s, it / others for it", lambda r: (r.waited_seconds, r.waited_for_seconds), 1
        ),
    ]
    full = [column for column in columns if any(any(column.figures(row)) for row in job.ranks)]
    return full, [column.name for column in columns if column not in full]


def _phase_column(name: str) -> RankColumn:
    label = names.phase(name)
    return RankColumn(label[:1].upper() + label[1:], "s", lambda row: (row.phases.get(name),), 2)


def outcomes(job: Job) -> list[str]:
    """Every way in which some look-up of a cache ended."""
    return list(dict.fromkeys(name for row in job.caches.rows for name in row.counts))


def seconds_by_rank(job: Job, most: int) -> str:
    """``rank 2 13.1 s, rank 3 6.16 s and 510 more``: the longest first."""
    timed = [row for row in job.ranks if row.seconds is not None and fmt.given(row.seconds)]
    timed.sort(key=lambda row: -(row.seconds or 0.0))
    said = ", ".join(f"{row.rank} {fmt.seconds(row.seconds)}" for row in timed[:most])
    rest = len(timed) - most + job.ranks_left_out
    return f"{said} and {rest:,} more" if said and rest > 0 else said


def troubles(job: Job, diagnosis: Diagnosis) -> Iterator[tuple[str, str]]:
    """What went wrong, a line each: failures, stragglers, divergence, late compiles."""
    for failure in job.failures:
        place = line(failure.file, failure.line, diagnosis) if failure.file else failure.name
        reason = (failure.reason or failure.fail_type or "").strip().partition("\n")[0]
        said = f"{failure.name} at {place} on {who(failure.ranks)}{': ' if reason else ''}{reason}"
        yield names.word(names.FAILURES, failure.outcome).lower(), said
    for straggler in job.stragglers:
        yield "straggler", f"{straggler.rank}, {fmt.seconds(straggler.seconds)}: {straggler.why}"
    for found in job.divergences:
        yield "divergence", words.said(found.text, diagnosis)
    if job.late and job.late.rows:
        late = job.late
        since = "after a first 10 s without any"
        if late.after_step is not None:
            since = f"in step {late.after_step} or later"
        longest = late.rows[0]
        cause = f": {longest.cause}" if longest.cause else ""
        yield (
            "late",
            f"{fmt.plural(late.compiles, 'compile')} {since}, {fmt.seconds(late.seconds)}, most of "
            f"it {longest.name} at {line(longest.file, longest.line, diagnosis)}{cause}",
        )
