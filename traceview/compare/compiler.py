"""Functions, graph breaks and recompiles of both runs, matched by place.

Where both runs are jobs, the figures are of all their ranks; else of the one rank that the
diagnosis is about.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from traceview.compare.causes import moved
from traceview.compare.figures import LEAST_S, NOISE, logged
from traceview.compare.files import Files
from traceview.compare.matching import Site, pairs, plain_function
from traceview.compare.model import BreakPair, ChainPair, FramePair, Place, ThingChange
from traceview.compare.noise import Sides, beyond
from traceview.compare.side import Side
from traceview.diagnosis.job.model import JobBreak, JobChain, JobFrame, Recompile

MOST_GUARDS = 5
#: The order in which changes are listed.
_CHANGES = ("came", "grew", "went", "shrank", "same", "unknown")


class Compiled(msgspec.Struct, frozen=True):
    """A function; seconds and compiles are sums over ``ranks`` (None: of one rank)."""

    site: Site
    seconds: float | None
    compiles: int | None
    phases: dict[str, float]
    ranks: int | None = None


class Broken(msgspec.Struct, frozen=True):
    """A place where graphs break."""

    site: Site
    reason: str
    gb_id: str | None
    times: int | None
    ranks: int | None = None


class Chained(msgspec.Struct, frozen=True):
    """A function that recompiled, and the sources whose guards failed."""

    site: Site
    recompiles: int
    guards: tuple[str, ...]
    limit_hit: bool
    ranks: int | None = None


class Thing(Protocol):
    """Any of them: a place, and the number of ranks."""

    @property
    def site(self) -> Site: ...

    @property
    def ranks(self) -> int | None: ...


T = TypeVar("T", bound=Thing)


def file_names(side: Side) -> Iterator[str]:
    """Every file that a frame, a graph break or a chain of recompiles names."""
    diagnosis = side.diagnosis
    named = [row.co_filename for row in side.frames]
    named += [site.file for site in diagnosis.graph_breaks]
    named += [chain.file for chain in diagnosis.recompiles]
    if diagnosis.job is not None:
        named += [frame.file for frame in diagnosis.job.frames]
        named += [one.file for one in diagnosis.job.breaks]
        named += [chain.file for chain in diagnosis.job.recompiles]
    yield from filter(None, named)


def frames(sides: Sides, files: Files) -> tuple[FramePair, ...]:
    """Compile seconds by function, the largest difference first."""
    old, new = (_compiled(side, of_all=_both_jobs(sides)) for side in (sides.before, sides.after))
    rows = []
    for was, now, how in _matched(old, new, files):
        seconds = was.seconds if was else None, now.seconds if now else None
        places = _placed(sides.before, was), _placed(sides.after, now)
        row = FramePair(
            name=_shown(now, was).site.function or "?",
            before=places[0],
            after=places[1],
            before_seconds=seconds[0],
            after_seconds=seconds[1],
            before_compiles=was.compiles if was else None,
            after_compiles=now.compiles if now else None,
            before_phases=was.phases if was else {},
            after_phases=now.phases if now else {},
            change=_change(sides, was, now, *seconds, sides.unrest(NOISE), LEAST_S),
            moved=moved(files, *places),
            matched_by=how,
            before_ranks=was.ranks if was else None,
            after_ranks=now.ranks if now else None,
        )
        rows.append(row)

    def by_difference(row: FramePair) -> tuple[float, str]:
        return -abs((row.after_seconds or 0.0) - (row.before_seconds or 0.0)), row.name

    return tuple(sorted(rows, key=by_difference))


def breaks(sides: Sides, files: Files) -> tuple[BreakPair, ...]:
    """Places of graph breaks; a place whose reason is worded differently is the same place."""
    old, new = (_broken(side, of_all=_both_jobs(sides)) for side in (sides.before, sides.after))
    matched = list(_matched(old, new, files))
    found = [pair for pair in matched if pair[0] and pair[1]]
    left = [_of_any_reason(was) for was, now, _ in matched if was and not now]
    right = [_of_any_reason(now) for was, now, _ in matched if now and not was]
    found += _matched(left, right, files)

    rows = []
    for was, now, how in found:
        times = was.times if was else None, now.times if now else None
        places = _placed(sides.before, was), _placed(sides.after, now)
        shown = _shown(now, was)
        row = BreakPair(
            reason=shown.reason,
            gb_id=shown.gb_id,
            before=places[0],
            after=places[1],
            before_times=times[0],
            after_times=times[1],
            change=_change(sides, was, now, *times),
            moved=moved(files, *places),
            matched_by=how,
            before_ranks=was.ranks if was else None,
            after_ranks=now.ranks if now else None,
        )
        rows.append(row)
    return tuple(sorted(rows, key=lambda row: (_CHANGES.index(row.change), row.reason)))


def chains(sides: Sides, files: Files) -> tuple[ChainPair, ...]:
    """Recompiles by function."""
    old, new = (_chained(side, of_all=_both_jobs(sides)) for side in (sides.before, sides.after))
    rows = []
    for was, now, how in _matched(old, new, files):
        times = was.recompiles if was else None, now.recompiles if now else None
        places = _placed(sides.before, was), _placed(sides.after, now)
        row = ChainPair(
            name=_shown(now, was).site.function or "?",
            before=places[0],
            after=places[1],
            before_recompiles=times[0],
            after_recompiles=times[1],
            before_guards=was.guards if was else (),
            after_guards=now.guards if now else (),
            before_limit_hit=bool(was and was.limit_hit),
            after_limit_hit=bool(now and now.limit_hit),
            change=_change(sides, was, now, *times),
            moved=moved(files, *places),
            matched_by=how,
            before_ranks=was.ranks if was else None,
            after_ranks=now.ranks if now else None,
        )
        rows.append(row)
    return tuple(sorted(rows, key=lambda row: (_CHANGES.index(row.change), row.name)))


def _both_jobs(sides: Sides) -> bool:
    """A job and a run of one process are compared by one rank each."""
    return sides.before.diagnosis.job is not None and sides.after.diagnosis.job is not None


def _compiled(side: Side, *, of_all: bool) -> list[Compiled]:
    found = []
    if (job := side.diagnosis.job) is not None and of_all:
        for one in job.frames:
            name, count = _name(one), one.ranks.count
            site = Site.of(side, name, one.file, one.line, name)
            found.append(Compiled(site, one.rank_seconds, one.compiles, one.phases, count))
        return found
    for row in side.frames:
        name = plain_function(row.co_name or "?")
        site = Site.of(side, name, row.co_filename, row.co_firstlineno, name)
        found.append(Compiled(site, row.total_s, row.compiles, row.phases))
    return found


def _broken(side: Side, *, of_all: bool) -> list[Broken]:
    job = side.diagnosis.job
    rows = side.diagnosis.graph_breaks if job is None or not of_all else job.breaks
    return [
        Broken(
            Site.of(side, one.gb_id or one.reason, one.file, one.line, one.function, one.reason),
            one.reason,
            one.gb_id,
            one.times,
            one.ranks.count if isinstance(one, JobBreak) else None,
        )
        for one in rows
    ]


def _chained(side: Side, *, of_all: bool) -> list[Chained]:
    """One per function: in a job, ranks that recompiled differently have their own chains."""
    job = side.diagnosis.job
    if job is None or not of_all:
        found = []
        for chain in side.diagnosis.recompiles:
            name = plain_function(chain.name)
            site = Site.of(side, name, chain.file, chain.line, name)
            guards = _guards(chain.links)
            found.append(Chained(site, len(chain.links), guards, chain.limit_hit))
        return found

    joined: dict[tuple[str, str | None, int | None], Chained] = {}
    for one in job.recompiles:
        name, ranks = _name(one), one.ranks.count
        site = Site.of(side, name, one.file, one.line, name)
        new = Chained(site, one.recompiles, _guards(one.links), one.limit_hit, ranks)
        key = (name, one.file, one.line)
        if key in joined:
            old = joined[key]
            new = replace(
                old,
                recompiles=old.recompiles + new.recompiles,
                guards=tuple(dict.fromkeys((*old.guards, *new.guards)))[:MOST_GUARDS],
                limit_hit=old.limit_hit or new.limit_hit,
                ranks=(old.ranks or 0) + ranks,
            )
        joined[key] = new
    return list(joined.values())


def _name(row: JobFrame | JobChain) -> str:
    """``forward``, or ``forward (resumed)`` for code after a graph break."""
    return plain_function(row.co_name or row.name.removesuffix("()"))


def _guards(links: Iterable[Recompile]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(link.source_name or link.guard for link in links))[:MOST_GUARDS]


def _matched(
    old: Sequence[T], new: Sequence[T], files: Files
) -> Iterator[tuple[T | None, T | None, str | None]]:
    for i, j, how in pairs([one.site for one in old], [one.site for one in new], files):
        yield None if i is None else old[i], None if j is None else new[j], how


def _of_any_reason(one: Broken) -> Broken:
    return replace(one, site=replace(one.site, what=""))


def _shown(new: T | None, old: T | None) -> T:
    """The one that a pair is named after: the newer one."""
    return next(one for one in (new, old) if one)


def _placed(side: Side, thing: Thing | None) -> Place | None:
    if thing is None:
        return None
    return side.place(thing.site.file, thing.site.line, thing.site.function)


def _change(
    sides: Sides,
    before: Thing | None,
    after: Thing | None,
    old: float | None,
    new: float | None,
    noise: float = 0.0,
    least: float = 0.0,
) -> ThingChange:
    """Came and went only if the other run has compiler logs; grew and shrank only beyond noise.

    With different numbers of ranks, the figures per rank are compared.
    """
    if before is None:
        return "came" if logged(sides.before) else "unknown"
    if after is None:
        return "went" if logged(sides.after) else "unknown"
    if old is None or new is None:
        return "unknown"
    if before.ranks and after.ranks and before.ranks != after.ranks:
        old, new = old / before.ranks, new / after.ranks
    if not beyond(old, new, noise, least):
        return "same"
    return "grew" if new > old else "shrank"
