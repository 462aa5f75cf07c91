"""Table ``rank_waits``: compiles during which another rank waited and compiled nothing.

All ranks of a run are processes of one machine, so their clocks are one. A rank waits where
a step of its own takes longer than usual; one that made progress did not wait. Ranks that
compile the same code in the same step don't wait for each other, however long each of them takes.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import polars as pl

from traceview.derive.intervals import Interval, merge, shared
from traceview.derive.processes import main_processes, of_process
from traceview.tables import Tables, from_rows, grouped

Row = Mapping[str, Any]
Code = tuple[str | None, int | None, str | None]

#: A rank that is only slowed down, by the compile's own threads, still gets on.
_STILL = 0.8
_CACHES = ("fx_graph", "aotautograd")


def rank_waits(tables: Tables) -> pl.DataFrame:
    """One row a compile that another rank waited for; none where there is one rank only."""
    # Compile key → how its look-ups in the caches of graphs ended.
    lookups: dict[str, set[str]] = defaultdict(set)
    events = tables["cache_events"].filter(pl.col("cache").is_in(_CACHES)).drop_nulls("compile_key")
    for key, event in events.select("compile_key", "event").iter_rows():
        lookups[key].add(event)
    rows = []
    for name in tables["runs"]["pass"].unique(maintain_order=True):
        ranks = [_Rank(tables, run) for run in main_processes(tables, name)]
        for rank in ranks if len(ranks) > 1 else ():
            for compile_ in rank.compiles:
                waits = (other.wait(rank, compile_, lookups) for other in ranks)
                known = [wait for wait in waits if wait is not None]
                rows += sorted(known, key=lambda wait: -wait["wait_ms"])[:1]
    return from_rows("rank_waits", rows)


class _Rank:
    """What one rank compiled, and how it got on."""

    def __init__(self, tables: Tables, run: Row) -> None:
        self.rank = run["rank"]
        compiles, steps, blocks = (
            of_process(tables[name], dict(run)) for name in ("compiles", "steps", "blocks")
        )
        known = compiles.drop_nulls(["started_us", "duration_us"])
        self.compiles = known.sort("started_us").to_dicts()
        self.spans = merge(map(_span, self.compiles))
        self.by_code = grouped(self.compiles, by=_code)
        self._edges = sorted(_edges(steps, blocks))
        self._usual_us = _usual_us(steps)

    def step_at(self, time_us: float) -> int | None:
        """The step that it was in; None before the first one."""
        return next((step for time, step in reversed(self._edges) if time <= time_us), None)

    def lost_us(self, span: Interval) -> float:
        """How much of ``span``, its own compiles aside, it waited.

        It waits in a step for as long as the step takes more than usual, its compiles aside.
        """
        lost = 0.0
        for (start, step), (end, following) in pairwise(self._edges):
            part = max(start, span[0]), min(end, span[1])
            inside = part[1] - part[0] - shared(part, self.spans)
            if inside > 0:
                own = shared((start, end), self.spans)
                excess = end - start - own - (following - step) * self._usual_us
                lost += min(inside, max(0.0, excess))
        return lost

    def wait(self, rank: _Rank, compile_: Row, lookups: Mapping[str, set[str]]) -> Row | None:
        """What it lost while ``rank`` did this compile; None where it did not wait."""
        if self is rank:
            return None
        step = rank.step_at(compile_["started_us"])
        # The same code that it compiled in the same step, or at the same time.
        same = [
            row
            for row in self.by_code.get(_code(compile_), ())
            if self.step_at(row["started_us"]) == step or shared(_span(row), [_span(compile_)])
        ]
        if same:  # it waited only if it found in a cache what this one had to compile
            own = lookups.get(compile_["compile_key"], set())
            others = [lookups.get(row["compile_key"], set()) for row in same]
            if "miss" not in own or any("hit" not in them or "miss" in them for them in others):
                return None
        start, end = span = _span(compile_)
        alone_us = end - start - shared(span, self.spans)
        lost_us = self.lost_us(span)
        if not lost_us or lost_us < _STILL * alone_us:
            return None
        return {
            **{key: compile_[key] for key in ("pass", "compile_key", "compile_id", "is_forward")},
            "rank": rank.rank,
            "step": step,
            "waiting_rank": self.rank,
            "started_us": compile_["started_us"],
            "compile_ms": alone_us / 1e3,
            "wait_ms": lost_us / 1e3,
            "found_in_cache": bool(same),
        }


def _code(row: Row) -> Code:
    return row["co_filename"], row["co_firstlineno"], row["co_name"]


def _span(row: Row) -> Interval:
    return int(row["started_us"]), int(row["started_us"] + row["duration_us"])


def _edges(steps: pl.DataFrame, blocks: pl.DataFrame) -> Iterator[tuple[int, int]]:
    """(time in µs, step that begins) wherever that is known."""
    for row in steps.drop_nulls(["started_us", "host_ms"]).iter_rows(named=True):
        yield int(row["started_us"]), row["step"]
        yield int(row["started_us"] + 1e3 * row["host_ms"]), row["step"] + 1
    for row in blocks.drop_nulls(["started_us", "host_ms"]).iter_rows(named=True):
        yield int(row["started_us"]), row["first_step"]
        yield int(row["started_us"] + 1e3 * row["host_ms"]), row["first_step"] + row["steps"]


def _usual_us(steps: pl.DataFrame) -> float:
    """Median time of a compiled step in which nothing was compiled; 0 where there is none."""
    quiet = steps.filter(pl.col("compiles_inside") == 0, pl.col("stance") == "compiled")
    found = quiet["host_ms"].drop_nulls().to_list()
    return 1e3 * statistics.median(found) if found else 0.0
