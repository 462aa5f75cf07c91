"""Frames, graph breaks and recompiles of both runs, matched function by function."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

from msgspec.structs import replace

from traceview.compare.causes import moved
from traceview.compare.figures import logged
from traceview.compare.files import Files
from traceview.compare.matching import Site, pairs
from traceview.compare.model import BreakPair, ChainPair, FramePair, Place, ThingChange
from traceview.compare.noise import Sides, beyond
from traceview.compare.side import Side
from traceview.compare.told import Broken, Chained, Compiled, broken, chained, compiled
from traceview.compare.values import text
from traceview.diagnosis.model import Diagnosis

NOISE, LEAST_S = 0.25, 0.5


class Thing(Protocol):
    """What the compiler did at a place, on so many ranks."""

    @property
    def site(self) -> Site: ...

    @property
    def ranks(self) -> int | None: ...


T = TypeVar("T", bound=Thing)


def file_names(diagnosis: Diagnosis) -> Iterator[str]:
    """Every file that a frame, a graph break or a chain of recompiles names."""
    named = [text(row, "co_filename") for row in diagnosis.compile_time.frames]
    named += [site.file for site in diagnosis.graph_breaks]
    named += [chain.file for chain in diagnosis.recompiles]
    if diagnosis.job is not None:
        named += [frame.file for frame in diagnosis.job.frames]
        named += [one.file for one in diagnosis.job.breaks]
        named += [chain.file for chain in diagnosis.job.recompiles]
    yield from filter(None, named)


def frames(sides: Sides, files: Files) -> tuple[FramePair, ...]:
    """Compile seconds by function, the largest difference first."""
    of_all = _both_jobs(sides)
    old, new = (compiled(side, of_all=of_all) for side in (sides.before, sides.after))
    found = [_frame(sides, files, *pair) for pair in _matched(old, new, files)]
    return tuple(sorted(found, key=_by_difference))


def breaks(sides: Sides, files: Files) -> tuple[BreakPair, ...]:
    """Places of graph breaks; a place whose reason is told in other words is the same place."""
    of_all = _both_jobs(sides)
    old, new = (broken(side, of_all=of_all) for side in (sides.before, sides.after))
    matched = list(_matched(old, new, files))
    left = [was for was, is_, _ in matched if is_ is None and was is not None]
    right = [is_ for was, is_, _ in matched if was is None and is_ is not None]
    again = pairs(
        [_any_reason(one.site) for one in left], [_any_reason(one.site) for one in right], files
    )
    found = [
        *[pair for pair in matched if None not in pair[:2]],
        *((_at(left, i), _at(right, j), how) for i, j, how in again),
    ]
    rows = [_break(sides, files, *pair) for pair in found]
    return tuple(sorted(rows, key=lambda row: (_CHANGES.index(row.change), row.reason)))


def chains(sides: Sides, files: Files) -> tuple[ChainPair, ...]:
    """Recompiles by function."""
    of_all = _both_jobs(sides)
    old, new = (chained(side, of_all=of_all) for side in (sides.before, sides.after))
    rows = [_chain(sides, files, *pair) for pair in _matched(old, new, files)]
    return tuple(sorted(rows, key=lambda row: (_CHANGES.index(row.change), row.name)))


_CHANGES = ("came", "grew", "went", "shrank", "same", "unknown")


def _both_jobs(sides: Sides) -> bool:
    """A job against a run of one process is compared rank against rank."""
    return sides.before.diagnosis.job is not None and sides.after.diagnosis.job is not None


def _matched(
    old: Sequence[T], new: Sequence[T], files: Files
) -> Iterator[tuple[T | None, T | None, str | None]]:
    found = pairs([one.site for one in old], [one.site for one in new], files)
    return ((_at(old, i), _at(new, j), how) for i, j, how in found)


def _at(found: Sequence[T], index: int | None) -> T | None:
    return None if index is None else found[index]


def _frame(
    sides: Sides, files: Files, old: Compiled | None, new: Compiled | None, how: str | None
) -> FramePair:
    seconds = old.seconds if old else None, new.seconds if new else None
    places = _placed(sides.before, old), _placed(sides.after, new)
    shown = next(one for one in (new, old) if one)
    return FramePair(
        name=shown.site.function or "?",
        before=places[0],
        after=places[1],
        before_seconds=seconds[0],
        after_seconds=seconds[1],
        before_compiles=old.compiles if old else None,
        after_compiles=new.compiles if new else None,
        before_phases=old.phases if old else {},
        after_phases=new.phases if new else {},
        change=_change(sides, old, new, *seconds, sides.unrest(NOISE), LEAST_S),
        moved=moved(files, *places),
        matched_by=how,
        before_ranks=old.ranks if old else None,
        after_ranks=new.ranks if new else None,
    )


def _placed(side: Side, thing: Thing | None) -> Place | None:
    if thing is None:
        return None
    return side.place(thing.site.file, thing.site.line, thing.site.function)


def _by_difference(pair: FramePair) -> tuple[float, str]:
    return -abs((pair.after_seconds or 0.0) - (pair.before_seconds or 0.0)), pair.name


def _change(
    sides: Sides,
    before: Thing | None,
    after: Thing | None,
    old: float | None,
    new: float | None,
    noise: float = 0.0,
    least: float = 0.0,
) -> ThingChange:
    """Came and went where the other run's compiler was heard; grew and shrank beyond noise.

    On other numbers of ranks, what counts is how much it is on each.
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


def _any_reason(site: Site) -> Site:
    return replace(site, what="")


def _break(
    sides: Sides, files: Files, old: Broken | None, new: Broken | None, how: str | None
) -> BreakPair:
    shown = next(one for one in (new, old) if one)
    times = old.times if old else None, new.times if new else None
    places = _placed(sides.before, old), _placed(sides.after, new)
    return BreakPair(
        reason=shown.reason,
        gb_id=shown.gb_id,
        before=places[0],
        after=places[1],
        before_times=times[0],
        after_times=times[1],
        change=_change(sides, old, new, *times),
        moved=moved(files, *places),
        matched_by=how,
        before_ranks=old.ranks if old else None,
        after_ranks=new.ranks if new else None,
    )


def _chain(
    sides: Sides, files: Files, old: Chained | None, new: Chained | None, how: str | None
) -> ChainPair:
    shown = next(one for one in (new, old) if one)
    many = old.recompiles if old else None, new.recompiles if new else None
    places = _placed(sides.before, old), _placed(sides.after, new)
    return ChainPair(
        name=shown.site.function or "?",
        before=places[0],
        after=places[1],
        before_recompiles=many[0],
        after_recompiles=many[1],
        before_guards=old.guards if old else (),
        after_guards=new.guards if new else (),
        before_limit_hit=bool(old and old.limit_hit),
        after_limit_hit=bool(new and new.limit_hit),
        change=_change(sides, old, new, *many),
        moved=moved(files, *places),
        matched_by=how,
        before_ranks=old.ranks if old else None,
        after_ranks=new.ranks if new else None,
    )
