"""Frames, graph breaks and recompiles of both runs, matched function by function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from traceview.compare.causes import moved
from traceview.compare.figures import logged
from traceview.compare.files import Files
from traceview.compare.matching import Site, pairs, plain_function
from traceview.compare.model import BreakPair, ChainPair, FramePair, Place, ThingChange
from traceview.compare.noise import Sides, beyond
from traceview.compare.side import Side
from traceview.compare.values import number, text, whole
from traceview.derive.compile_costs import PHASES
from traceview.diagnosis.model import Diagnosis, GraphBreakSite, RecompileChain

T = TypeVar("T")
Row = Mapping[str, Any]
NOISE, LEAST_S = 0.25, 0.5
MOST_GUARDS = 5


def file_names(diagnosis: Diagnosis) -> Iterator[str]:
    """Every file that a frame, a graph break or a chain of recompiles names."""
    named = [text(row, "co_filename") for row in diagnosis.compile_time.frames]
    named += [site.file for site in diagnosis.graph_breaks]
    named += [chain.file for chain in diagnosis.recompiles]
    yield from filter(None, named)


def frames(sides: Sides, files: Files) -> tuple[FramePair, ...]:
    """Compile seconds by function, the largest difference first."""
    old, new = (_by_function(side) for side in (sides.before, sides.after))
    found = [
        _frame(sides, files, _at(old, i), _at(new, j), how)
        for i, j, how in pairs([site for site, _ in old], [site for site, _ in new], files)
    ]
    return tuple(sorted(found, key=_by_difference))


def breaks(sides: Sides, files: Files) -> tuple[BreakPair, ...]:
    """Places of graph breaks; a place whose reason is told in other words is the same place."""
    old = [(_break_site(sides.before, one), one) for one in sides.before.diagnosis.graph_breaks]
    new = [(_break_site(sides.after, one), one) for one in sides.after.diagnosis.graph_breaks]
    matched = pairs([site for site, _ in old], [site for site, _ in new], files)
    left = [i for i, j, _ in matched if j is None and i is not None]
    right = [j for i, j, _ in matched if i is None and j is not None]
    again = pairs(
        [_any_reason(old[i][0]) for i in left], [_any_reason(new[j][0]) for j in right], files
    )
    found = [
        *[one for one in matched if None not in one[:2]],
        *((_at(left, i), _at(right, j), how) for i, j, how in again),
    ]
    rows = [_break(sides, files, _at(old, i), _at(new, j), how) for i, j, how in found]
    return tuple(sorted(rows, key=lambda row: (_CHANGES.index(row.change), row.reason)))


def chains(sides: Sides, files: Files) -> tuple[ChainPair, ...]:
    """Recompiles by function."""
    old = [(_chain_site(sides.before, one), one) for one in sides.before.diagnosis.recompiles]
    new = [(_chain_site(sides.after, one), one) for one in sides.after.diagnosis.recompiles]
    rows = [
        _chain(sides, files, _at(old, i), _at(new, j), how)
        for i, j, how in pairs([site for site, _ in old], [site for site, _ in new], files)
    ]
    return tuple(sorted(rows, key=lambda row: (_CHANGES.index(row.change), row.name)))


_CHANGES = ("came", "grew", "went", "shrank", "same", "unknown")


def _at(found: Sequence[T], index: int | None) -> T | None:
    return None if index is None else found[index]


def _by_function(side: Side) -> list[tuple[Site, Row]]:
    found: list[tuple[Site, Row]] = []
    for row in side.diagnosis.compile_time.frames:
        name = plain_function(text(row, "co_name") or "?")
        line = whole(row, "co_firstlineno")
        found.append((Site.of(side, name, text(row, "co_filename"), line, name), row))
    return found


def _frame(
    sides: Sides,
    files: Files,
    old: tuple[Site, Row] | None,
    new: tuple[Site, Row] | None,
    how: str | None,
) -> FramePair:
    (before, was), (after, is_) = old or (None, {}), new or (None, {})
    seconds = number(was, "total_s"), number(is_, "total_s")
    places = _placed(sides.before, before), _placed(sides.after, after)
    site = after or before
    return FramePair(
        name=(site.function or "?") if site else "?",
        before=places[0],
        after=places[1],
        before_seconds=seconds[0],
        after_seconds=seconds[1],
        before_compiles=whole(was, "compiles"),
        after_compiles=whole(is_, "compiles"),
        before_phases=_phases(was),
        after_phases=_phases(is_),
        change=_change(sides, old, new, *seconds, sides.unrest(NOISE), LEAST_S),
        moved=moved(files, *places),
        matched_by=how,
    )


def _placed(side: Side, site: Site | None) -> Place | None:
    return side.place(site.file, site.line, site.function) if site else None


def _phases(row: Row) -> dict[str, float]:
    found = {name: number(row, name) for name in PHASES}
    return {name: seconds for name, seconds in found.items() if seconds is not None}


def _by_difference(pair: FramePair) -> tuple[float, str]:
    return -abs((pair.after_seconds or 0.0) - (pair.before_seconds or 0.0)), pair.name


def _change(
    sides: Sides,
    before: object,
    after: object,
    old: float | None,
    new: float | None,
    noise: float = 0.0,
    least: float = 0.0,
) -> ThingChange:
    """Came and went where the other run's compiler was heard; grew and shrank beyond noise."""
    if before is None:
        return "came" if logged(sides.before) else "unknown"
    if after is None:
        return "went" if logged(sides.after) else "unknown"
    if old is None or new is None:
        return "unknown"
    if not beyond(old, new, noise, least):
        return "same"
    return "grew" if new > old else "shrank"


def _break_site(side: Side, one: GraphBreakSite) -> Site:
    return Site.of(side, one.gb_id or one.reason, one.file, one.line, one.function, one.reason)


def _any_reason(site: Site) -> Site:
    return Site("", site.file, site.line, site.function, site.text, site.title)


def _break(
    sides: Sides,
    files: Files,
    old: tuple[Site, GraphBreakSite] | None,
    new: tuple[Site, GraphBreakSite] | None,
    how: str | None,
) -> BreakPair:
    (before, was), (after, is_) = old or (None, None), new or (None, None)
    shown = next(site for site in (is_, was) if site)
    times = was.times if was else None, is_.times if is_ else None
    places = _placed(sides.before, before), _placed(sides.after, after)
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
    )


def _chain_site(side: Side, one: RecompileChain) -> Site:
    name = plain_function(one.name)
    return Site.of(side, name, one.file, one.line, name)


def _chain(
    sides: Sides,
    files: Files,
    old: tuple[Site, RecompileChain] | None,
    new: tuple[Site, RecompileChain] | None,
    how: str | None,
) -> ChainPair:
    (before, was), (after, is_) = old or (None, None), new or (None, None)
    site = after or before
    many = len(was.links) if was else None, len(is_.links) if is_ else None
    places = _placed(sides.before, before), _placed(sides.after, after)
    return ChainPair(
        name=(site.function or "?") if site else "?",
        before=places[0],
        after=places[1],
        before_recompiles=many[0],
        after_recompiles=many[1],
        before_guards=_guards(was),
        after_guards=_guards(is_),
        before_limit_hit=bool(was and was.limit_hit),
        after_limit_hit=bool(is_ and is_.limit_hit),
        change=_change(sides, old, new, *many),
        moved=moved(files, *places),
        matched_by=how,
    )


def _guards(chain: RecompileChain | None) -> tuple[str, ...]:
    links = chain.links if chain else ()
    return tuple(dict.fromkeys(link.source_name or link.guard for link in links))[:MOST_GUARDS]
