"""Functions, graph breaks and recompiles of both runs, matched by place.

Where both runs are jobs, the figures are of all their ranks; else of the one rank that the
diagnosis is about.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, TypeVar

import msgspec
from msgspec.structs import asdict, replace

from traceview.compare.causes import moved
from traceview.compare.figures import LEAST_S, NOISE, compiled
from traceview.compare.files import Files
from traceview.compare.matching import Site, pairs, plain_function
from traceview.compare.model import BreakPair, ChainPair, FramePair, ThingChange
from traceview.compare.noise import Sides, beyond
from traceview.compare.side import Side
from traceview.diagnosis.job.model import Job, JobBreak, JobChain, JobFrame, Recompile

MOST_GUARDS = 5
#: The order in which changes are listed.
_CHANGES = ("came", "grew", "went", "shrank", "same", "unknown")


class Thing(msgspec.Struct, frozen=True):
    """A thing of one run, or by its defaults none; ``ranks``: of a job, on how many it occurs.

    A pair of things has what is not in ``_ONCE`` of each, as ``before_…`` and ``after_…``.
    """

    site: Site = Site("", None, None, None, None)
    ranks: int | None = None

    @property
    def name(self) -> str:
        """The function."""
        return self.site.function or "?"


class Compiled(Thing, frozen=True):
    """A function; seconds and compiles are sums over ``ranks`` (None: of one rank)."""

    seconds: float | None = None
    compiles: int | None = None
    phases: dict[str, float] = {}


class Broken(Thing, frozen=True):
    """A place where graphs break."""

    reason: str = ""
    gb_id: str | None = None
    times: int | None = None


class Chained(Thing, frozen=True):
    """A function that recompiled, and the sources whose guards failed."""

    recompiles: int | None = None
    guards: tuple[str, ...] = ()
    limit_hit: bool = False


#: Figures that depend on the machine.
_TIMES = frozenset(("seconds",))
_ONCE = ("site", "reason", "gb_id")
T = TypeVar("T", bound=Thing)
Match = tuple[T | None, T | None, str | None]


def file_names(side: Side) -> Iterator[str]:
    """Every file that a frame, a graph break or a chain of recompiles names."""
    diagnosis, job = side.diagnosis, side.diagnosis.job
    ours = diagnosis.graph_breaks, diagnosis.recompiles
    jobs = (job.frames, job.breaks, job.recompiles) if job else ()
    named = (row.file for row in chain(*ours, *jobs))
    yield from filter(None, (*(row.co_filename for row in side.frames), *named))


def frames(sides: Sides, files: Files) -> tuple[FramePair, ...]:
    """Compile seconds by function, the largest difference first."""
    old, new = (_compiled(side, job) for side, job in _jobs(sides))
    matched = _matched(old, new, files)
    noise = sides.unrest(NOISE)
    found = _paired(Compiled, "seconds", sides, files, matched, noise, LEAST_S)
    rows = [FramePair(name=shown.name, **fields) for shown, fields in found]

    def by_difference(row: FramePair) -> tuple[float, str]:
        return -abs((row.after_seconds or 0.0) - (row.before_seconds or 0.0)), row.name

    return tuple(sorted(rows, key=by_difference))


def breaks(sides: Sides, files: Files) -> tuple[BreakPair, ...]:
    """Places of graph breaks; a place whose reason is worded differently is the same place."""
    old, new = (_broken(side, job) for side, job in _jobs(sides))
    matched = list(_matched(old, new, files))
    both = [(was, now, how) for was, now, how in matched if was and now]
    left = [_of_any_reason(was) for was, now, _ in matched if was and not now]
    right = [_of_any_reason(now) for was, now, _ in matched if now and not was]
    found = _paired(Broken, "times", sides, files, [*both, *_matched(left, right, files)])
    rows = [BreakPair(reason=one.reason, gb_id=one.gb_id, **fields) for one, fields in found]
    return tuple(sorted(rows, key=lambda row: (_CHANGES.index(row.change), row.reason)))


def chains(sides: Sides, files: Files) -> tuple[ChainPair, ...]:
    """Recompiles by function."""
    old, new = (_chained(side, job) for side, job in _jobs(sides))
    matched = _matched(old, new, files)
    found = _paired(Chained, "recompiles", sides, files, matched)
    rows = [ChainPair(name=shown.name, **fields) for shown, fields in found]
    return tuple(sorted(rows, key=lambda row: (_CHANGES.index(row.change), row.name)))


def _jobs(sides: Sides) -> tuple[tuple[Side, Job | None], ...]:
    """Each run with its job; a job and a run of one process are compared by one rank each."""
    both = (sides.before, sides.after)
    of_all = all(side.diagnosis.job is not None for side in both)
    return tuple((side, side.diagnosis.job if of_all else None) for side in both)


def _compiled(side: Side, job: Job | None) -> list[Compiled]:
    found = []
    for one in job.frames if job else ():
        site = _function(side, _code(one), one.file, one.line)
        found.append(Compiled(site, one.ranks.count, one.rank_seconds, one.compiles, one.phases))
    for row in side.frames if job is None else ():
        site = _function(side, row.co_name or "?", row.co_filename, row.co_firstlineno)
        found.append(Compiled(site, None, row.total_s, row.compiles, row.phases))
    return found


def _broken(side: Side, job: Job | None) -> list[Broken]:
    found = []
    for one in job.breaks if job else side.diagnosis.graph_breaks:
        what = one.gb_id or one.reason
        site = Site.of(side, what, one.file, one.line, one.function, one.reason)
        ranks = one.ranks.count if isinstance(one, JobBreak) else None
        found.append(Broken(site, ranks, one.reason, one.gb_id, one.times))
    return found


def _chained(side: Side, job: Job | None) -> list[Chained]:
    """One per function: in a job, ranks that recompiled differently have their own chains."""
    if job is None:
        return [
            Chained(
                _function(side, one.name, one.file, one.line),
                recompiles=len(one.links),
                guards=_guards(one.links),
                limit_hit=one.limit_hit,
            )
            for one in side.diagnosis.recompiles
        ]
    joined: dict[Site, Chained] = {}
    for row in job.recompiles:
        site = _function(side, _code(row), row.file, row.line)
        old = joined.get(site, Chained())
        joined[site] = Chained(
            site,
            (old.ranks or 0) + row.ranks.count,
            (old.recompiles or 0) + row.recompiles,
            tuple(dict.fromkeys((*old.guards, *_guards(row.links))))[:MOST_GUARDS],
            old.limit_hit or row.limit_hit,
        )
    return list(joined.values())


def _function(side: Side, name: str, file: str | None, line: int | None) -> Site:
    """``forward``, or ``forward (resumed)`` for code after a graph break."""
    plain = plain_function(name)
    return Site.of(side, plain, file, line, plain)


def _code(row: JobFrame | JobChain) -> str:
    return row.co_name or row.name.removesuffix("()")


def _guards(links: Iterable[Recompile]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(link.source_name or link.guard for link in links))[:MOST_GUARDS]


def _matched(old: list[T], new: list[T], files: Files) -> Iterator[Match[T]]:
    for i, j, how in pairs([one.site for one in old], [one.site for one in new], files):
        yield None if i is None else old[i], None if j is None else new[j], how


def _of_any_reason(one: Broken) -> Broken:
    return replace(one, site=replace(one.site, what=""))


def _paired(
    kind: type[T],
    figure: str,
    sides: Sides,
    files: Files,
    matched: Iterable[Match[T]],
    noise: float = 0.0,
    least: float = 0.0,
) -> Iterator[tuple[T, dict[str, Any]]]:
    """The newer one of each match, and the fields of its pair that come from both.

    ``figure`` is the field by which it grew or shrank, if by more than ``noise`` and ``least``.
    """
    for was, now, how in matched:
        fields: dict[str, Any] = {}
        for run, side, thing in (("before", sides.before, was), ("after", sides.after, now)):
            at = (thing or kind()).site
            fields[run] = side.place(at.file, at.line, at.function)
            own = asdict(thing or kind()).items()
            fields |= {f"{run}_{name}": value for name, value in own if name not in _ONCE}
        fields["change"] = _change(sides, was, now, figure, noise, least)
        fields["moved"] = moved(files, fields["before"], fields["after"])
        yield now or was or kind(), {**fields, "matched_by": how}


def _change(
    sides: Sides, was: Thing | None, now: Thing | None, figure: str, noise: float, least: float
) -> ThingChange:
    """Came and went only if the other run has compiler logs; grew and shrank only beyond noise.

    With different numbers of ranks, the figures per rank are compared.
    """
    if was is None:
        return "came" if compiled(sides.before) else "unknown"
    if now is None:
        return "went" if compiled(sides.after) else "unknown"
    old, new = getattr(was, figure), getattr(now, figure)
    if old is None or new is None:
        return "unknown"
    if was.ranks and now.ranks and was.ranks != now.ranks:
        old, new = old / was.ranks, new / now.ranks
    if figure in _TIMES and sides.other_machine:
        return "unknown"
    if not beyond(old, new, noise, least):
        return "same"
    return "grew" if new > old else "shrank"
