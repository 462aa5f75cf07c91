"""What the compiler did in a run: functions, graph breaks and recompiles, each with its place.

Where both runs are jobs, of all their ranks; else of the rank that the diagnosis speaks of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from msgspec.structs import replace

from traceview.compare.matching import Site, plain_function
from traceview.compare.side import Side
from traceview.compare.values import number, text, whole
from traceview.derive.compile_costs import PHASES
from traceview.diagnosis.job.model import ChainLink, JobChain, JobFrame
from traceview.diagnosis.model import RecompileLink

MOST_GUARDS = 5


class Compiled(msgspec.Struct, frozen=True):
    """A function; seconds and compiles are of all ``ranks`` together (None: of one rank)."""

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
    """A function that was compiled again, and what was guarded."""

    site: Site
    recompiles: int
    guards: tuple[str, ...]
    limit_hit: bool
    ranks: int | None = None


def compiled(side: Side, *, of_all: bool) -> list[Compiled]:
    """Functions."""
    job = side.diagnosis.job
    return list(_compiled(side) if job is None or not of_all else _compiled_of_all(side))


def broken(side: Side, *, of_all: bool) -> list[Broken]:
    """Graph breaks."""
    job = side.diagnosis.job
    rows = side.diagnosis.graph_breaks if job is None or not of_all else job.breaks
    return [
        Broken(
            Site.of(side, one.gb_id or one.reason, one.file, one.line, one.function, one.reason),
            one.reason,
            one.gb_id,
            one.times,
            getattr(getattr(one, "ranks", None), "count", None),
        )
        for one in rows
    ]


def chained(side: Side, *, of_all: bool) -> list[Chained]:
    """Recompiles."""
    job = side.diagnosis.job
    if job is not None and of_all:
        return list(_chained_of_all(side, job.recompiles))
    found = []
    for one in side.diagnosis.recompiles:
        name = plain_function(one.name)
        site = Site.of(side, name, one.file, one.line, name)
        found.append(Chained(site, len(one.links), _guards(one.links), one.limit_hit))
    return found


def _compiled(side: Side) -> Iterator[Compiled]:
    for row in side.diagnosis.compile_time.frames:
        name = plain_function(text(row, "co_name") or "?")
        line = whole(row, "co_firstlineno")
        site = Site.of(side, name, text(row, "co_filename"), line, name)
        phases = {phase: number(row, phase) for phase in PHASES}
        known = {phase: seconds for phase, seconds in phases.items() if seconds is not None}
        yield Compiled(site, number(row, "total_s"), whole(row, "compiles"), known)


def _compiled_of_all(side: Side) -> Iterator[Compiled]:
    job = side.diagnosis.job
    for row in job.frames if job else ():
        name = _name(row)
        site = Site.of(side, name, row.file, row.line, name)
        yield Compiled(site, row.rank_seconds, row.compiles, dict(row.phases), row.ranks.count)


def _chained_of_all(side: Side, chains: Iterable[JobChain]) -> Iterator[Chained]:
    """One a function: ranks that went another way have a chain of their own."""
    found: dict[tuple[str, str | None, int | None], Chained] = {}
    for one in chains:
        name = _name(one)
        new = Chained(
            Site.of(side, name, one.file, one.line, name),
            one.recompiles,
            _guards(one.links),
            one.limit_hit,
            one.ranks.count,
        )
        key = (name, one.file, one.line)
        found[key] = _joined(found[key], new) if key in found else new
    yield from found.values()


def _joined(one: Chained, other: Chained) -> Chained:
    return replace(
        one,
        recompiles=one.recompiles + other.recompiles,
        guards=tuple(dict.fromkeys((*one.guards, *other.guards)))[:MOST_GUARDS],
        limit_hit=one.limit_hit or other.limit_hit,
        ranks=(one.ranks or 0) + (other.ranks or 0),
    )


def _name(row: JobFrame | JobChain) -> str:
    """``forward``, or ``forward (resumed)`` for code after a graph break."""
    return plain_function(row.co_name or row.name.removesuffix("()"))


def _guards(links: Iterable[RecompileLink | ChainLink]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(link.source_name or link.guard for link in links))[:MOST_GUARDS]
