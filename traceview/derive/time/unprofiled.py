"""A window played again without what its events cost the host.

Every recorded event costs the host about the same time, around the event (``host_line``). Taken
away, the host comes to its launches earlier, and the device to its work, though a kernel takes as
long as before: a block starts when the one before has ended and its launch has arrived, and a call
that waited for the device returns when the device is there. Steps follow one another: the window is
played in a circle until it repeats, so that neither the drained device before a window nor the one
after it counts.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import msgspec
import polars as pl

from traceview.derive import causes

#: Rounds after which a window's timeline repeats; the last one is looked at.
ROUNDS = 3
#: The part of a gap between two kernels of a cudagraph that can be the profiler's, and how often
#: it is halved to find it.
MOST_OF_A_GAP = 0.5
_TURNS = 12


class _Wait(NamedTuple):
    """A call that returns ``rest`` ns after the end of ``block`` less ``ahead`` ns."""

    block: int
    ahead: int
    rest: int


class Without(msgspec.Struct, frozen=True):
    """What is left of a window when something is taken away.

    ``runs``: their length in ns; ``passed``: numbers of the waits that are not made; ``busy``: ns
    of work of every block.
    """

    runs: pl.Series
    passed: frozenset[int]
    busy: list[int]


class Round(msgspec.Struct, frozen=True):
    """The last round, ns from the first round's begin.

    ``period``: how long after the round before the device is done. ``blocks``: as ``blocks_of``
    gives them. ``shifts`` of the host's clock after each wait, in the round before and in this one.
    """

    period: float
    blocks: pl.DataFrame
    shifts: tuple[list[float], list[float]]


def numbered(line: pl.DataFrame) -> pl.DataFrame:
    """``line`` with ``row``, and ``run``: neighbours with one cause share their events' cost."""
    apart = pl.struct("cause", pl.when("waits").then(pl.col("start")))
    return line.with_row_index("row").with_columns(run=apart.rle_id().cast(pl.Int64))


def runs_of(line: pl.DataFrame) -> pl.DataFrame:
    """The runs of a numbered line: ``run``, ``cause``, ``waits``, ``start``, ``end``, ``edges``."""
    return line.group_by("run", maintain_order=True).agg(
        pl.col("cause", "waits", "start").first(), pl.col("end").last(), pl.col("edges").sum()
    )


def lengths(runs: pl.DataFrame, event_ns: float) -> pl.Series:
    """ns of every run less its events' cost; the collector's own work takes none."""
    left = pl.col("end") - pl.col("start") - pl.col("edges") * (event_ns / 2)
    own = pl.col("cause") == causes.OWN
    length = pl.when(own).then(0.0).otherwise(left.clip(lower_bound=0))
    return runs.select(length=length)["length"]


class Player:
    """One window's host runs and device blocks, ready to be played at any cost of an event."""

    def __init__(self, runs: pl.DataFrame, blocks: pl.DataFrame, kernel_ends: pl.Series) -> None:
        """``blocks``: ``device.blocks_of``; ``kernel_ends``: of the kernels in them, ns."""
        self._runs, self.blocks = runs, blocks
        waits = runs.with_row_index("at").filter("waits")
        self._wait_runs = waits["at"].cast(pl.Int64)
        self._waits = _waits(waits, blocks, kernel_ends)
        launch = blocks["launch"]
        at = runs["start"].search_sorted(launch.fill_null(0), side="right").cast(pl.Int64) - 1
        self._launch_runs = at.clip(lower_bound=0)
        begun, over = (runs[edge].gather(self._launch_runs) for edge in ("start", "end"))
        self._launch_parts = ((launch - begun) / (over - begun)).clip(0, 1)
        passed = waits["start"].search_sorted(launch.fill_null(0), side="left")
        self._passed: list[int] = passed.to_list()
        self.busy: list[int] = (blocks["end"] - blocks["start"]).to_list()
        self._ramps, self._latencies = (blocks[name].to_list() for name in ("ramp", "latency"))
        self._in_graph: list[bool] = (blocks["cause"] == causes.IN_GRAPH).to_list()

    def play(
        self, event_ns: float, graph_gaps: float = 1.0, without: Without | None = None
    ) -> Round:
        """The timeline that repeats when an event costs the host ``event_ns``.

        ``graph_gaps``: the part that is left of each gap between two kernels of a graph.
        """
        left = without or Without(moving(self._runs, event_ns), frozenset(), self.busy)
        length, busy = left.runs, left.busy
        clock = length.cum_sum() - length
        reached = length.gather(self._launch_runs) * self._launch_parts
        launches = (clock.gather(self._launch_runs) + reached).to_list()
        reaches = clock.gather(self._wait_runs).to_list()
        waits = [None if number in left.passed else at for number, at in enumerate(reaches)]
        shift, end, period = 0.0, -inf, 0.0
        kept: list[list[float]] = []
        for _ in range(ROUNDS):
            starts, before, shifts = self._round(launches, waits, busy, shift, end, graph_gaps)
            period = starts[-1] + busy[-1] - end
            end = starts[-1] + busy[-1]
            kept.append(shifts)
            shift = shifts[-1] + float(length.sum())
        arrivals = [
            None if launch is None else launch + shifts[passed]
            for launch, passed in zip(launches, self._passed, strict=True)
        ]
        blocks = self.blocks.with_columns(
            pl.Series("before", before, dtype=pl.Float64),
            pl.Series("start", starts, dtype=pl.Float64),
            pl.Series("launch", arrivals, dtype=pl.Float64),
        )
        return Round(period, blocks, (kept[-2], kept[-1]))

    def graph_gaps(self, timed: float, event_ns: float) -> float:
        """The most that can be left of each gap inside a graph to take ``timed`` ns.

        ``event_ns``: the most that an event costs, as what it does cost is asked for after that.
        """
        least, most = 0.0, MOST_OF_A_GAP
        for _ in range(_TURNS):
            part = (least + most) / 2
            if self.play(event_ns, 1 - part).period > timed:
                least = part
            else:
                most = part
        return 1 - most

    def _round(
        self,
        launches: list[float | None],
        waits: list[float | None],
        busy: list[int],
        shift: float,
        end: float,
        graph_gaps: float,
    ) -> tuple[list[float], list[float], list[float]]:
        """Starts of the blocks, ends of what came before each, the host's shift after each wait.

        ``waits``: when the host comes to each, None to one that it does not make.
        """
        starts: list[float] = []
        before: list[float] = []
        shifts = [shift]
        ramps = [
            ramp * graph_gaps if inside else ramp
            for ramp, inside in zip(self._ramps, self._in_graph, strict=True)
        ]
        work = zip(launches, self._passed, ramps, self._latencies, busy, strict=True)
        for launch, passed, ramp, latency, ns in work:
            while launch is not None and len(shifts) <= passed:
                shifts.append(self._after(waits, shifts, starts, busy, end))
            before.append(end)
            start = end + ramp
            if launch is not None:
                arrived = launch + shifts[passed] + latency
                start = arrived if arrived > start else start
            elif start == -inf:
                start = shift
            if ns:  # else its work is gone
                end = start + ns
            starts.append(end - ns)
        while len(shifts) <= len(waits):
            shifts.append(self._after(waits, shifts, starts, busy, end))
        return starts, before, shifts

    def _after(
        self,
        waits: list[float | None],
        shifts: list[float],
        starts: list[float],
        busy: list[int],
        end: float,
    ) -> float:
        """The host's shift after the next wait."""
        number = len(shifts) - 1
        wait, at = self._waits[number], waits[number]
        if at is None:
            return shifts[-1]
        if 0 <= wait.block < len(starts):
            end = starts[wait.block] + busy[wait.block] - wait.ahead
        elif wait.block < 0:
            end = -inf
        return max(at + shifts[-1], end) + wait.rest - at


def moving(runs: pl.DataFrame, event_ns: float) -> pl.Series:
    """``lengths``, but a wait takes what the device makes of it."""
    moving = pl.when(~pl.col("waits")).then(lengths(runs, event_ns)).otherwise(0.0)
    return runs.select(length=moving)["length"]


def _waits(waits: pl.DataFrame, blocks: pl.DataFrame, kernel_ends: pl.Series) -> list[_Wait]:
    """What each call waited for: the last kernel that had ended when it returned."""
    ends = kernel_ends.sort()
    over = ends.search_sorted(waits["end"], side="right").cast(pl.Int64)
    last = ends.gather((over - 1).clip(lower_bound=0))
    block = blocks["start"].search_sorted(last, side="left").cast(pl.Int64) - 1
    ahead = blocks["end"].gather(block.clip(lower_bound=0)) - last
    found = pl.DataFrame({"start": waits["start"], "end": waits["end"], "last": last})
    rest = pl.col("end") - pl.max_horizontal("start", pl.when(over > 0).then("last"))
    none = over == 0
    return [
        _Wait(-1 if nothing else at, less, more)
        for nothing, at, less, more in zip(
            none, block, ahead, found.select(rest).to_series(), strict=True
        )
    ]


def positions(
    line: pl.DataFrame, runs: pl.DataFrame, event_ns: float, shifts: list[float]
) -> pl.DataFrame:
    """``start`` and ``end`` of the stretches of ``line`` in a round whose host has ``shifts``."""
    length = moving(runs, event_ns)
    clock = length.cum_sum() - length
    passed = runs["waits"].cum_sum().cast(pl.Int64)
    shifted = pl.Series(shifts, dtype=pl.Float64)
    begin = clock + shifted.gather(passed - runs["waits"].cast(pl.Int64))
    end = clock + length + shifted.gather(passed)
    placed = runs.select("run", since="start").with_columns(
        begin=begin, scale=(end - begin) / (runs["end"] - runs["start"])
    )
    joined = line.select("run", "start", "end").join(
        placed, on="run", how="left", maintain_order="left"
    )
    return joined.select(
        (pl.col("begin") + (pl.col(edge) - pl.col("since")) * pl.col("scale")).alias(edge)
        for edge in ("start", "end")
    )
