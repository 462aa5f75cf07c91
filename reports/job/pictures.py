"""Pictures of a job: compile seconds by rank, and all ranks on one time axis.

Few ranks have a bar and a lane each. Many are columns side by side, and bands of neighbours: a band
is as dark as many of its ranks compile. Above the bands is how many of all do, and a lane for each
of the few ranks that the report names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from markupsafe import Markup

from traceview.diagnosis.job.model import Job, Lane, RankRow
from traceview.reports import colours, svg
from traceview.reports.job import words
from traceview.reports.pictures.bars import Bar, Segment, nice_ticks, stacked
from traceview.words import names
from traceview.words import numbers as fmt
from traceview.words.text import cut, one_line

MOST_BARS = 6
_COLUMNS, _TALLEST, _TOP = 128, 110.0, 18.0
MOST_LANES = 8
_BANDS, _CELLS, _NAMED, _SHADES = 16, 120, 3, 5
_GUTTER = 14.0  # percent, for the names of the bands
_PITCH, _LABEL, _THICK = 32, 17, 11
_BAND, _TALL = 13, 40
_THINNEST = 0.15
_WAITS = 0.3  # share of a band that must wait for it to be drawn as waiting


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
    if not few(job):
        return _columns(rows, title)
    bars = []
    for row in rows:
        parts = [
            Segment(seconds, colours.phase(name), names.phase(name), fmt.seconds(seconds))
            for name, seconds in row.phases.items()
            if svg.drawable(seconds) and seconds > 0
        ]
        left = (row.seconds or 0.0) - sum(part.length for part in parts)
        if left > 1e-3:
            parts.append(Segment(left, "rest", "not divided", fmt.seconds(left)))
        label = cut(one_line(row.rank), 20) + (" (straggler)" if row.straggler else "")
        bars.append(Bar(label, fmt.seconds(row.seconds), tuple(parts)))
    return stacked("by-rank", title, bars, 14)


def phases(job: Job) -> list[tuple[str, str]]:
    """Colour class and words of the phases that the bars are divided by."""
    if not few(job):
        return []
    known = dict.fromkeys(name for row in timed(job) for name, s in row.phases.items() if s > 0)
    return [(colours.phase(name), names.phase(name)) for name in known]


def _columns(rows: Sequence[RankRow], title: str) -> Markup:
    """A column for every rank; above ``_COLUMNS`` ranks one for some neighbours, the longest."""
    size = -(-len(rows) // _COLUMNS)
    bins = [rows[at : at + size] for at in range(0, len(rows), size)]
    most = max(row.seconds or 0.0 for row in rows)
    wide = 100 / len(bins)
    parts = [svg.text(0, 12, f"{fmt.seconds(most)} at most", "tick")]
    for index, part in enumerate(bins):
        top = max(part, key=lambda row: row.seconds or 0.0)
        tall = (top.seconds or 0.0) / most * _TALLEST
        family = "redu" if any(row.straggler for row in part) else "gemm"
        shape = svg.rect(
            index * wide,
            wide * (0.9 if wide > 2 else 1),
            _TOP + _TALLEST - tall,
            tall,
            f"f-{family} thin",
        )
        said = top.rank if len(part) == 1 else f"{part[0].rank} to {part[-1].rank}: {top.rank}"
        parts.append(svg.titled(f"{said} {fmt.seconds(top.seconds)}", shape))
    bottom = _TOP + _TALLEST
    parts.append(svg.line(0, bottom, 100, bottom, "grid"))
    parts.append(svg.text(0, bottom + 14, cut(one_line(rows[0].rank), 20), "tick"))
    parts.append(svg.text(100, bottom + 14, cut(one_line(rows[-1].rank), 20), "tick", "end"))
    slowest = sorted(rows, key=lambda row: -(row.seconds or 0.0))[:12]
    said = ", ".join(f"{row.rank} {fmt.seconds(row.seconds)}" for row in slowest)
    spoken = f"{fmt.plural(len(rows), 'rank')}; the longest: {said}"
    return svg.picture("by-rank", bottom + 20, title, spoken, parts)


def banded(job: Job) -> bool:
    """Whether ranks are drawn together."""
    return len(job.timeline.lanes) > MOST_LANES


def timeline(job: Job) -> Markup:
    """All ranks on one axis."""
    line = job.timeline
    if not line.lanes or not svg.drawable(line.seconds) or line.seconds <= 0:
        return svg.EMPTY
    lanes = sorted(line.lanes, key=lambda lane: words.order(lane.rank))
    parts: list[Markup] = []
    left, bottom = 0.0, float(len(lanes) * _PITCH)
    if banded(job):
        left = _GUTTER
        parts, bottom = _bands(job, lanes)
    else:
        for index, lane in enumerate(lanes):
            parts += _lane(job, lane, index * _PITCH, left)
    for tick in nice_ticks(line.seconds):  # round times below
        share = tick / line.seconds
        anchor = "start" if share < 0.03 else "end" if share > 0.94 else "middle"
        x = left + share * (100 - left)
        parts.append(svg.text(x, bottom + 14, f"{tick:.6g} s", "tick", anchor))
    known, spoken = line.kinds, []
    for lane in lanes[:40]:
        sums: dict[str, float] = {}
        for _, length, index in lane.spans:
            name = words.span(known[index])[0] if index < len(known) else "other"
            sums[name] = sums.get(name, 0.0) + length
        said = ", ".join(f"{name} {fmt.seconds(total)}" for name, total in sums.items())
        spoken.append(f"{lane.rank}: {said or 'nothing'}")
    rest = f"; and {len(lanes) - 40:,} more ranks" if len(lanes) > 40 else ""
    said = f"{fmt.seconds(line.seconds)} in all; {'; '.join(spoken)}{rest}"
    return svg.picture("timeline", bottom + 18, "All ranks over time", said, parts)


def kinds(job: Job) -> list[tuple[str, str]]:
    """Colour class and words of what is drawn."""
    found = {index for lane in job.timeline.lanes for _, _, index in lane.spans}
    names = [name for index, name in enumerate(job.timeline.kinds) if index in found]
    return [(words.span(name)[1], words.span(name)[0]) for name in names]


def _bands(job: Job, lanes: Sequence[Lane]) -> tuple[list[Markup], float]:
    """How many ranks compile; lanes of those that the report names; bands of ranks; their foot."""
    size = -(-len(lanes) // _BANDS)
    groups = [lanes[at : at + size] for at in range(0, len(lanes), size)]
    busy = [_shares(job, group, wait=False) for group in groups]
    # Columns: how many ranks compile at a time.
    parts = [
        svg.text(0, 12, "ranks compiling", "tick"),
        svg.text(_GUTTER - 1, 30, fmt.count(len(lanes)), "tick band-name", "end"),
        svg.line(_GUTTER, 18, 100, 18, "grid"),
    ]
    wide = (100 - _GUTTER) / _CELLS
    for cell in range(_CELLS):
        count = sum(shares[cell] * len(group) for shares, group in zip(busy, groups, strict=True))
        tall = count / len(lanes) * _TALL
        if tall >= 0.2:
            shape = svg.rect(_GUTTER + cell * wide, wide, 18 + _TALL - tall, tall, "f-gemm thin")
            said = f"{fmt.count(count)} of {len(lanes):,} ranks compile"
            parts.append(svg.titled(said, shape))
    top = _TALL + 22.0
    # Stragglers, the longest rank and those that others waited for.
    wanted = dict.fromkeys((*(s.rank for s in job.stragglers), job.compile.most_rank))
    wanted |= dict.fromkeys(wait.rank for wait in job.waits)
    by_rank = {lane.rank: lane for lane in lanes}
    named = [by_rank[rank] for rank in wanted if rank in by_rank][:_NAMED]
    for lane in named if size > 1 else ():
        parts += _lane(job, lane, top, _GUTTER)
        top += _PITCH
    for group, compiling in zip(groups, busy, strict=True):
        first, last = words.bare(group[0].rank), words.bare(group[-1].rank)
        name = cut(one_line(first if len(group) == 1 else f"{first}–{last}"), 9)
        parts.append(svg.text(_GUTTER - 1, top + 10.5, name, "tick band-name", "end"))
        parts.append(svg.rect(_GUTTER, 100 - _GUTTER, top + 1, _BAND - 2, "track"))
        states = [
            -1 if wait > share and wait >= _WAITS else -(-round(share * 100) * _SHADES // 100)
            for share, wait in zip(compiling, _shares(job, group, wait=True), strict=True)
        ]
        for state, cells in groupby(range(len(states)), key=states.__getitem__):
            run = list(cells)
            place = (_GUTTER + run[0] * wide, len(run) * wide, top + 1, _BAND - 2)
            if state < 0:
                parts.append(svg.filled(*place, "idle-sync", "timeline"))
            elif state:
                parts.append(svg.rect(*place, f"f-gemm thin shade{min(state, _SHADES)}"))
        top += _BAND
    return parts, top + 2


def _shares(job: Job, group: Sequence[Lane], *, wait: bool) -> list[float]:
    """For every cell of the axis, the share of the group's time in it that they compile (wait)."""
    wanted = {index for index, name in enumerate(job.timeline.kinds) if (name == "wait") == wait}
    cell = job.timeline.seconds / _CELLS
    found = [0.0] * _CELLS
    for start, length, kind in (span for lane in group for span in lane.spans):
        if kind not in wanted or not svg.drawable(start) or not svg.drawable(length):
            continue
        low, high = max(0.0, start / cell), min(float(_CELLS), (start + length) / cell)
        for index in range(int(low), min(_CELLS, int(high) + 1)):
            found[index] += max(0.0, min(high, index + 1) - max(low, index))
    return [min(1.0, share / len(group)) for share in found]


def _lane(job: Job, lane: Lane, top: float, left: float) -> Iterator[Markup]:
    """A label, and the spans of one rank below it."""
    line, wide = job.timeline, 100 - left
    yield svg.text(left, top + 12, cut(one_line(lane.rank), 20), "rowlabel halo")
    yield svg.rect(left, wide, top + _LABEL, _THICK, "track")
    for start, length, index in lane.spans:
        if not svg.drawable(start) or not svg.drawable(length):
            continue
        said, family = words.span(line.kinds[index] if index < len(line.kinds) else "?")
        width = min(wide, max(length / line.seconds * wide, _THINNEST))
        at = left + min(max(0.0, start / line.seconds * wide), wide - width)
        shape = svg.filled(at, width, top + _LABEL, _THICK, family, "timeline")
        tip = f"{lane.rank}: {said}, {fmt.seconds(length)} from {fmt.seconds(start)} on"
        yield svg.titled(tip, shape)
