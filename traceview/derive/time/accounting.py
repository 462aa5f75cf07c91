"""A step's time by category, as profiled and on the step as timed without the profiler.

``profiled`` is what stands in the trace. On the timed step:

- busy time of a device is as profiled: the profiler slows the host down, not the kernels;
- the profiler costs the host about the same time for every event that it records, and more around
  those that ``host_line`` names. What an event costs is the least with which the profiled window,
  played again without it (``unprofiled``), takes a step between those of the blocks next to it and
  the timed one, from 0 to ``MOST_EVENT_US``. It is taken away by the number of events: five
  milliseconds of sleep stay five milliseconds, a hundred operators lose a hundred times the cost.
  On a CPU an operator's own time holds no event, and stays;
- pages that only profiled steps touch for the first time (``Faults``) are taken away from a host's
  operators, as far as the window does not get shorter than its step. Which operators they fell to
  is not recorded: each gives in proportion to its time;
- the kernels of a cudagraph stand further apart where each is recorded. Where a window is longer
  than its step whatever an event costs, the least that such a gap can have grown by is taken away,
  at most half of it;
- a collective's kernel runs until the last rank takes part, and under the profiler that one comes
  later. Where a window is longer than its step whatever an event costs, the least that its
  collectives can have waited longer is taken away, at most all that they waited (``waits_ns``);
- a window that is shorter than every step without a profiler may lack what these waited for a
  processor: on a busy machine steps that were held up are left out of the window;
- what the step around the window so found differs by from the timed one is ``machine_speed``;
- what all categories together lack of the step, or have too much, is ``unexplained``. It is
  not spread. The costs that are free, between their limits, can only shorten a step that the host
  or a graph's gaps decide, and not below the work of the device or of the operators. So the rest
  shows where the profiled window and the blocks were not the same work at the same speed: a script
  that ended before the blocks next to a window, steps that differ, a window so short that its mean
  says little.

Without a timed step the account is as profiled, and nothing is known of the profiler's cost.
"""

from __future__ import annotations

from typing import Any

import msgspec
import polars as pl
from msgspec.structs import replace

from traceview.derive import causes
from traceview.derive.intervals import Interval as Span
from traceview.derive.time import device, host_line, unprofiled
from traceview.derive.time.device import COMMUNICATION, Idle
from traceview.derive.time.profiler_cost import MOST_EVENT_US, EventCost, Interval, event_cost
from traceview.derive.windows import Window

Row = dict[str, Any]
#: Whether an operator works in a run of the host, 0 or 1.
_WORKS = (
    ~pl.col("cause").is_in([*causes.WORKLESS, causes.OWN])
    & ~pl.col("cause").str.starts_with("overhead")
).cast(pl.Float64)


class Played(msgspec.Struct, frozen=True):
    """A window ready to be played again as it was without the profiler, and how long it took."""

    player: unprofiled.Player
    event_ns: float
    graph_gaps: float
    period_ns: float


class Account(msgspec.Struct, frozen=True):
    """One window's time; ns of the whole window.

    ``rows``: ``cause``, ``row`` (of ``line``; null: no stretch of the host), ``arriving`` (its
    launch was on its way), ``profiled``, ``ns`` (as timed). ``busy``: category → ns as profiled.
    ``line``: the host's stretches. ``span_ns``: as profiled, less the collector's own work.
    ``cost``: of the profiler's events, and what is unexplained; ``faults_ns``: of the pages that
    only the profiler had touched; ``waits_ns``: of the waits in collectives that only the profiler
    made so long; ``played``: the window as played without the profiler, where a device worked.
    """

    rows: pl.DataFrame
    busy: dict[str, float]
    line: pl.DataFrame
    span_ns: float
    cost: EventCost
    faults_ns: float = 0.0
    waits_ns: float = 0.0
    played: Played | None = None

    def busy_as_timed(self) -> dict[str, float]:
        """``busy`` less the waits in collectives that are the profiler's."""
        less = {COMMUNICATION: self.waits_ns}
        return {name: ns - less.get(name, 0.0) for name, ns in self.busy.items()}

    @classmethod
    def of_device(
        cls, window: Window, line: pl.DataFrame, span: Span, timed: Interval | None
    ) -> Account:
        """Work of the device, and what the host did while it had none."""
        kernels = window.main_kernels
        blocks, busy = device.blocks_of(kernels, span[0]), device.busy_shares(kernels)
        # Up to the end of the window the host made the device wait.
        end = {"start": span[1], "end": span[1], "before": blocks["end"][-1], "launch": span[1]}
        end |= {"latency": 0, "ramp": 0, "cause": causes.UNLINKED, "staged": False}
        closed = [blocks, pl.DataFrame([end]).select(blocks.columns)]
        profiled = device.idle_time(pl.concat(closed, how="vertical_relaxed"), line)
        own = profiled.rows.filter(pl.col("cause") == causes.OWN)["ns"].sum()
        length = span[1] - span[0] - float(own)
        runs = unprofiled.runs_of(line)
        player = unprofiled.Player(runs, blocks, kernels["start_ns"] + kernels["duration_ns"])
        gaps = 1.0
        if timed is None:
            played = Played(player, 0.0, gaps, player.play(0.0).period)
            rows = _side_by_side(profiled, profiled)
            return cls(rows, busy, line, length, EventCost(), played=played)
        cost = event_cost(lambda us: player.play(us * 1000).period, timed)
        if cost.timed is not None and (cost.left or 0.0) < 0:
            gaps = player.graph_gaps(cost.timed, 1000 * MOST_EVENT_US)
            cost = event_cost(lambda us: player.play(us * 1000, gaps).period, timed)
        event_ns = (cost.us or 0.0) * 1000
        last = player.play(event_ns, gaps)
        # The host may still be in the round before when the device begins the last one.
        what = line.select("row", "cause", "waits")
        rounds = [
            what.hstack(unprofiled.positions(line, runs, event_ns, shifts))
            for shifts in last.shifts
        ]
        freed = device.idle_time(last.blocks, pl.concat(rounds))
        played = Played(player, event_ns, gaps, last.period)
        return cls(_side_by_side(profiled, freed), busy, line, length, cost, played=played)


def account(
    window: Window,
    step_ms: Interval | None,
    compiles: pl.DataFrame | None = None,
    *,
    graphs_hold_kernels: bool,
    faults_ms: Interval = (0.0, 0.0),
    waits_ns: float = 0.0,
    queued_ms: float = 0.0,
) -> Account:
    """The account of one window; ``step_ms``: the step without a profiler is between these two.

    ``compiles`` are ``compiles_elsewhere``; ``graphs_hold_kernels`` is for ``host_causes``;
    ``faults_ms``: what the profiler's page faults can have taken of a step, and how short the step
    may get by that; ``waits_ns``: how long the window's collectives waited for other ranks;
    ``queued_ms``: how long of the shorter step without a profiler its thread had no processor.
    """
    scale = (window.steps or 0) * 1e6
    timed = None if step_ms is None or not scale else (step_ms[0] * scale, step_ms[1] * scale)
    span = device.device_span(window) if window.on_device else window.host_span
    line = host_line.host_line(window, (min(span[0], window.host_span[0]), span[1]))
    if window.on_device:
        line = host_line.device_causes(line, window)
    else:
        line = host_line.host_causes(line, window, graphs_hold_kernels=graphs_hold_kernels)
    if compiles is not None:
        line = host_line.with_compiles_elsewhere(line, compiles)
    line = unprofiled.numbered(line)
    if not window.on_device:
        faults = (faults_ms[0] * scale, faults_ms[1] * scale)
        return _of_host(line, timed, faults, queued_ms * scale)
    # A device without work in these steps waited for the host all the time.
    if not (window.main_kernels["duration_ns"] > 0).any():
        return _of_host(line, timed)
    found = Account.of_device(window, line, span, timed)
    # What it has too much was waits in collectives, at most all of them.
    too_much = max(0.0, -(found.cost.left or 0.0))
    taken = min(too_much, waits_ns, found.busy.get(COMMUNICATION, 0.0))
    if not taken:
        return found
    cost = found.cost._replace(left=(found.cost.left or 0.0) + taken)
    return replace(found, cost=cost, waits_ns=taken)


def _of_host(
    line: pl.DataFrame,
    timed: Interval | None,
    faults: Interval = (0.0, 0.0),
    queued: float = 0.0,
) -> Account:
    """Every stretch of the host counts.

    ``faults``: ns of the profiler's page faults, and how short the window may get by them. They are
    counted and their cost is measured, so they come before the events, whose cost is searched for.
    """
    runs = unprofiled.runs_of(line)
    whole = unprofiled.lengths(runs, 0.0)
    works = runs.select(_WORKS)["cause"]
    working = float((whole * works).sum())
    longer = max(0.0, float(whole.sum()) - faults[1])
    some = timed is not None and working > 0.0
    share = min(longer, faults[0], working) / working if some else 0.0

    def left(us: float) -> pl.Series:
        return unprofiled.lengths(runs, us * 1000) * (1.0 - share * works)

    cost = event_cost(lambda us: float(left(us).sum()), timed, queued)
    kept = left(cost.us or 0.0) / whole
    stretches = line.filter(pl.col("cause") != causes.OWN)
    length = (pl.col("end") - pl.col("start")).cast(pl.Float64)
    rows = stretches.join(runs.select("run", kept=kept), on="run", maintain_order="left").select(
        "cause", "row", arriving=pl.lit(False), profiled=length, ns=length * pl.col("kept")
    )
    taken = share * float((unprofiled.lengths(runs, (cost.us or 0.0) * 1000) * works).sum())
    return Account(rows, {}, line, float(whole.sum()), cost, taken)


def _side_by_side(profiled: Idle, freed: Idle) -> pl.DataFrame:
    """``rows`` of an account of both."""
    key = ["cause", "row", "arriving"]
    sides = []
    for idle, name in ((profiled, "profiled"), (freed, "ns")):
        nowhere = pl.lit(None, dtype=idle.rows["row"].dtype)
        others = idle.others.with_columns(row=nowhere, arriving=pl.lit(False))
        both = pl.concat([idle.rows.select(*key, "ns"), others.select(*key, "ns")])
        sides.append(both.group_by(key, maintain_order=True).agg(pl.col("ns").sum().alias(name)))
    joined = sides[0].join(sides[1], on=key, how="full", coalesce=True, nulls_equal=True)
    kept = joined.filter(pl.col("cause") != causes.OWN)
    return kept.with_columns(pl.col("profiled", "ns").fill_null(0.0))


def accounting(window: Window, account: Account) -> list[Row]:
    """Rows of table ``accounting`` for one window."""
    per_step, ms_per_step = window.per_step, window.ms_per_step
    counts = dict(window.kernels["category"].value_counts().iter_rows())
    rows = [
        _row(window, name, "busy", ms_per_step(ns))
        | {"profiled_ms": ms_per_step(account.busy[name]), "count": per_step(counts.get(name, 0))}
        for name, ns in account.busy_as_timed().items()
    ]
    # Everything that is no device's work; counted are the operators and calls that took part.
    line = account.line.select(pl.col("row"), event=pl.coalesce("call", "op"))
    found = (
        account.rows.with_columns(pl.col("row").cast(line["row"].dtype))
        .join(line, on="row", how="left")
        .group_by("cause", maintain_order=True)
        .agg(
            pl.col("profiled", "ns").sum(),
            pl.col("event").filter(~pl.col("arriving")).drop_nulls().n_unique(),
        )
    )
    for cause, profiled, ns, count in found.iter_rows():
        kind = "other" if cause in causes.WORKLESS else "busy"
        if window.on_device:
            kind = "idle"
        elif cause.startswith("overhead"):
            kind = "overhead"
        more = {"profiled_ms": ms_per_step(profiled), "count": per_step(count) if count else None}
        rows.append(_row(window, cause, kind, ms_per_step(ns)) | more)
    if account.cost.left is not None:
        unexplained = ms_per_step(account.cost.left)
        rows.append(_row(window, causes.UNEXPLAINED, causes.UNEXPLAINED, unexplained))
    return rows


def machine_speed(window: Window, account: Account, timed_ms: float) -> Row:
    """The row of ``accounting`` between the step as timed and as it was around the window."""
    around = window.ms_per_step(account.cost.timed or 0.0) or 0.0
    return _row(window, causes.SPEED, causes.SPEED, timed_ms - around)


def _row(window: Window, category: str, kind: str, ms: float | None) -> Row:
    named = {"category": category, "kind": kind, "clock": window.clock, "ms": ms}
    return {**window.head, **named}
