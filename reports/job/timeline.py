"""The timeline of all ranks: a lane each where they are few, else bands of neighbours.

A band is as dark as many of its ranks compile; over the bands stands how many of all do, and a lane
for each of the few ranks that the report speaks of by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from markupsafe import Markup

from traceview.diagnosis.job.model import Job, Lane
from traceview.reports import svg
from traceview.reports.job import words
from traceview.reports.pictures.axes import nice_ticks
from traceview.words import numbers as fmt
from traceview.words.text import cut, one_line

MOST_LANES = 8
_BANDS, _CELLS, _NAMED, _SHADES = 16, 120, 3, 5
_GUTTER = 14.0  # percent, for the names of the bands
_PITCH, _LABEL, _THICK = 32, 17, 11
_BAND, _TALL = 13, 40
_THINNEST = 0.15
_WAITS = 0.3  # share of a band that must wait for it to be drawn as waiting


def banded(job: Job) -> bool:
    """Whether ranks are drawn together."""
    return len(job.timeline.lanes) > MOST_LANES


def timeline(job: Job) -> Markup:
    """All ranks on one axis."""
    line = job.timeline
    if not line.lanes or not svg.drawable(line.seconds) or line.seconds <= 0:
        return svg.EMPTY
    lanes = sorted(line.lanes, key=lambda lane: words.order(lane.rank))
    draw = _bands if banded(job) else _lanes
    return draw(job, lanes)


def kinds(job: Job) -> list[tuple[str, str]]:
    """Colour class and words of what is drawn."""
    found = {index for lane in job.timeline.lanes for _, _, index in lane.spans}
    names = [name for index, name in enumerate(job.timeline.kinds) if index in found]
    return [(words.span(name)[1], words.span(name)[0]) for name in names]


def _lanes(job: Job, lanes: Sequence[Lane]) -> Markup:
    parts: list[Markup] = []
    for index, lane in enumerate(lanes):
        parts += _lane(job, lane, index * _PITCH, 0.0)
    bottom = len(lanes) * _PITCH
    parts += _axis(job.timeline.seconds, bottom, 0.0)
    return svg.picture("timeline", bottom + 18, "All ranks over time", _spoken(job, lanes), parts)


def _bands(job: Job, lanes: Sequence[Lane]) -> Markup:
    """How many ranks compile; lanes of those that the report names; bands of ranks."""
    size = -(-len(lanes) // _BANDS)
    groups = [lanes[at : at + size] for at in range(0, len(lanes), size)]
    busy = [_shares(job, group, wait=False) for group in groups]
    parts = _activity(busy, groups, len(lanes))
    top = _TALL + 22.0
    for lane in _named(job, lanes) if size > 1 else ():
        parts += _lane(job, lane, top, _GUTTER)
        top += _PITCH
    for group, compiling in zip(groups, busy, strict=True):
        waiting = _shares(job, group, wait=True)
        parts += _band(group, compiling, waiting, top)
        top += _BAND
    parts += _axis(job.timeline.seconds, top + 2, _GUTTER)
    return svg.picture("timeline", top + 20, "All ranks over time", _spoken(job, lanes), parts)


def _activity(
    busy: Sequence[Sequence[float]], groups: Sequence[Sequence[Lane]], ranks: int
) -> list[Markup]:
    """Columns: how many ranks compile at a time."""
    wide = (100 - _GUTTER) / _CELLS
    counts = [
        sum(shares[cell] * len(group) for shares, group in zip(busy, groups, strict=True))
        for cell in range(_CELLS)
    ]
    parts = [
        svg.text(0, 12, "ranks compiling", "tick"),
        svg.text(_GUTTER - 1, 30, fmt.count(ranks), "tick band-name", "end"),
        svg.line(_GUTTER, 18, 100, 18, "grid"),
    ]
    for cell, count in enumerate(counts):
        tall = count / ranks * _TALL
        if tall >= 0.2:
            shape = svg.rect(_GUTTER + cell * wide, wide, 18 + _TALL - tall, tall, "f-gemm thin")
            parts.append(svg.titled(f"{fmt.count(count)} of {ranks:,} ranks compile", shape))
    return parts


def _band(
    group: Sequence[Lane], compiling: Sequence[float], waiting: Sequence[float], top: float
) -> Iterator[Markup]:
    first, last = words.bare(group[0].rank), words.bare(group[-1].rank)
    name = first if len(group) == 1 else f"{first}–{last}"
    yield svg.text(_GUTTER - 1, top + 10.5, cut(one_line(name), 9), "tick band-name", "end")
    yield svg.rect(_GUTTER, 100 - _GUTTER, top + 1, _BAND - 2, "track")
    states = [
        -1 if wait > share and wait >= _WAITS else -(-round(share * 100) * _SHADES // 100)
        for share, wait in zip(compiling, waiting, strict=True)
    ]
    wide = (100 - _GUTTER) / _CELLS
    for start, length, state in _runs(states):
        place = (_GUTTER + start * wide, length * wide, top + 1, _BAND - 2)
        if state < 0:
            yield svg.filled(*place, "idle-sync", "timeline")
        elif state:
            yield svg.rect(*place, f"f-gemm thin shade{min(state, _SHADES)}")


def _runs(states: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Start, length and state of every run of the same state."""
    start = 0
    for index in range(1, len(states) + 1):
        if index == len(states) or states[index] != states[start]:
            yield start, index - start, states[start]
            start = index


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


def _named(job: Job, lanes: Iterable[Lane]) -> list[Lane]:
    """Lanes of stragglers, of the longest rank and of those that others waited for."""
    wanted = dict.fromkeys((*(s.rank for s in job.stragglers), job.compile.most_rank))
    wanted |= dict.fromkeys(wait.rank for wait in job.waits)
    by_rank = {lane.rank: lane for lane in lanes}
    return [by_rank[rank] for rank in wanted if rank in by_rank][:_NAMED]


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


def _axis(span: float, bottom: float, left: float) -> Iterator[Markup]:
    """Round times below."""
    for tick in nice_ticks(span):
        share = tick / span
        x = left + share * (100 - left)
        anchor = "start" if share < 0.03 else "end" if share > 0.94 else "middle"
        yield svg.text(x, bottom + 14, f"{tick:.6g} s", "tick", anchor)


def _spoken(job: Job, lanes: Sequence[Lane]) -> str:
    known = job.timeline.kinds
    pieces = []
    for lane in lanes[:40]:
        sums: dict[str, float] = {}
        for _, length, index in lane.spans:
            name = words.span(known[index])[0] if index < len(known) else "other"
            sums[name] = sums.get(name, 0.0) + length
        said = ", ".join(f"{name} {fmt.seconds(total)}" for name, total in sums.items())
        pieces.append(f"{lane.rank}: {said or 'nothing'}")
    rest = f"; and {len(lanes) - 40:,} more ranks" if len(lanes) > 40 else ""
    return f"{fmt.seconds(job.timeline.seconds)} in all; {'; '.join(pieces)}{rest}"
