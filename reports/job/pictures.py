"""Compile seconds by rank: a bar a rank where they are few, else columns side by side."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from markupsafe import Markup

from traceview.diagnosis.job.model import Job, RankRow
from traceview.reports import svg
from traceview.reports import words as common
from traceview.reports.job import words
from traceview.reports.pictures.bars import Bar, Segment, stacked
from traceview.words import numbers as fmt
from traceview.words.text import cut, one_line

MOST_BARS = 6
_COLUMNS, _TALL, _TOP = 128, 110.0, 18.0


def few(job: Job) -> bool:
    """Whether every rank has a bar of its own."""
    return len(timed(job)) <= MOST_BARS


def timed(job: Job) -> list[RankRow]:
    """Ranks whose compile seconds are known, by number."""
    rows = [row for row in job.ranks if svg.drawable(row.seconds)]
    return sorted(rows, key=lambda row: words.order(row.rank))


def by_rank(job: Job) -> Markup:
    """Compile seconds of every rank."""
    rows = timed(job)
    if not rows or not any(row.seconds for row in rows):
        return svg.EMPTY
    title = "Compile seconds by rank"
    if few(job):
        return stacked("by-rank", title, [_bar(row) for row in rows], 14)
    return _columns(rows, title)


def phases(job: Job) -> list[tuple[str, str]]:
    """Colour class and words of the phases that the bars are divided by."""
    if not few(job):
        return []
    names = dict.fromkeys(name for row in timed(job) for name, s in row.phases.items() if s > 0)
    return [(common.phase_family(name), common.phase(name)) for name in names]


def _bar(row: RankRow) -> Bar:
    parts = [
        Segment(seconds, common.phase_family(name), common.phase(name), fmt.seconds(seconds))
        for name, seconds in row.phases.items()
        if svg.drawable(seconds) and seconds > 0
    ]
    left = (row.seconds or 0.0) - sum(part.length for part in parts)
    if left > 1e-3:
        parts.append(Segment(left, "rest", "not divided", fmt.seconds(left)))
    mark = " (straggler)" if row.straggler else ""
    return Bar(f"{cut(one_line(row.rank), 20)}{mark}", fmt.seconds(row.seconds), tuple(parts))


def _columns(rows: Sequence[RankRow], title: str) -> Markup:
    """A column for every rank; above ``_COLUMNS`` ranks one for some neighbours, the longest."""
    size = -(-len(rows) // _COLUMNS)
    bins = [list(part) for _, part in groupby(rows, key=lambda row: rows.index(row) // size)]
    most = max(row.seconds or 0.0 for row in rows)
    wide = 100 / len(bins)
    parts = [svg.text(0, 12, f"{fmt.seconds(most)} at most", "tick")]
    for index, part in enumerate(bins):
        top = max(part, key=lambda row: row.seconds or 0.0)
        tall = (top.seconds or 0.0) / most * _TALL
        family = "redu" if any(row.straggler for row in part) else "gemm"
        shape = svg.rect(
            index * wide,
            wide * (0.9 if wide > 2 else 1),
            _TOP + _TALL - tall,
            tall,
            f"f-{family} thin",
        )
        names = top.rank if len(part) == 1 else f"{part[0].rank} to {part[-1].rank}: {top.rank}"
        parts.append(svg.titled(f"{names} {fmt.seconds(top.seconds)}", shape))
    bottom = _TOP + _TALL
    parts.append(svg.line(0, bottom, 100, bottom, "grid"))
    parts.append(svg.text(0, bottom + 14, cut(one_line(rows[0].rank), 20), "tick"))
    parts.append(svg.text(100, bottom + 14, cut(one_line(rows[-1].rank), 20), "tick", "end"))
    return svg.picture("by-rank", bottom + 20, title, _spoken(rows), parts)


def _spoken(rows: Sequence[RankRow]) -> str:
    dearest = sorted(rows, key=lambda row: -(row.seconds or 0.0))[:12]
    said = ", ".join(f"{row.rank} {fmt.seconds(row.seconds)}" for row in dearest)
    return f"{fmt.plural(len(rows), 'rank')}; the longest: {said}"
