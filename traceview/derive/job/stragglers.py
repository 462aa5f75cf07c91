"""Table ``job_stragglers``: ranks that compiled much longer than the others, and what with."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from traceview.derive.job.lookups import LookUp
from traceview.derive.job.ranks import code_columns
from traceview.derive.job.spans import Attempt, Code, Row

#: Longer than the median of the others by this factor, and by these seconds.
FACTOR, LEAST_S = 1.3, 1.0
#: Parts of a straggler's time that are kept, and stragglers.
_PARTS, _RANKS = 3, 16


class _Cell(msgspec.Struct):
    """What one rank compiled of one code object."""

    seconds: float = 0.0
    compiles: int = 0
    misses: int = 0


Cells = Mapping[Code, Mapping[str, _Cell]]


def straggler_rows(job: Attempt, found: Iterable[LookUp]) -> Iterator[Row]:
    """Up to three rows for each straggler, the slowest rank first."""
    seconds = {member: job.seconds(member) for member in job.members}
    timed = {member: value for member, value in seconds.items() if value is not None}
    if len(timed) < 2:
        return
    slow = []
    for member, value in timed.items():
        others = statistics.median(v for name, v in timed.items() if name != member)
        if value > FACTOR * others and value - others > LEAST_S:
            slow.append((value, others, member))
    cells = _cells(job, found) if slow else {}
    for value, others, member in sorted(slow, reverse=True)[:_RANKS]:
        for part in _parts(member, list(timed), cells):
            head = {"pass": job.name, "member": member, "seconds": value, "median_seconds": others}
            yield head | part


def _cells(job: Attempt, found: Iterable[LookUp]) -> Cells:
    cells: dict[Code, dict[str, _Cell]] = defaultdict(lambda: defaultdict(_Cell))
    for span in job.spans:
        cell = cells[span.code][span.member]
        cell.seconds += span.seconds or 0.0
        cell.compiles += span.forward
    for look_up in found:
        cells[look_up.span.code][look_up.member].misses += look_up.outcome == "miss"
    return cells


def _parts(member: str, members: list[str], cells: Cells) -> Iterator[Row]:
    """What it did longer than the median of the others, by function, dearest first."""
    parts = []
    for code, by_member in cells.items():
        mine = by_member.get(member)
        if mine is not None:
            others = [by_member.get(name, _Cell()) for name in members if name != member]
            usual = statistics.median(cell.seconds for cell in others)
            parts.append((mine.seconds - usual, code, mine, others))
    parts.sort(key=lambda part: -part[0])
    for excess, code, mine, others in parts[:_PARTS]:
        if excess > 0:
            yield {
                "part": _kind(mine, others),
                "part_seconds": excess,
                **code_columns(code),
                "compiles": mine.compiles,
                "basis": "derived",
            }


def _kind(mine: _Cell, others: list[_Cell]) -> str:
    if mine.misses > statistics.median(cell.misses for cell in others):
        return "cache_miss" if mine.compiles <= _most(others) else "more_compiles"
    return "more_compiles" if mine.compiles > _most(others) else "slower"


def _most(others: list[_Cell]) -> int:
    return int(statistics.median_high(cell.compiles for cell in others))
