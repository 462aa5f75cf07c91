"""The two times of a step and their ratio, from whichever measurement of this run is the best.

``paired_blocks``: median over block pairs of eager / compiled, by their weights. ``two_runs``: the
eager time comes from the all-eager pass. ``none``: one side or both were not measured; the one that
was is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import msgspec
import polars as pl

from traceview.derive.bootstrap import (
    Interval,
    median_interval,
    ratio_interval,
    weighted_median,
)
from traceview.derive.processes import Row, main_processes, of_process
from traceview.parse.collected.replays import per_step_ms
from traceview.tables import Tables

#: Usable pairs below which no verdict rests on them.
ENOUGH_PAIRS = 3
#: Pairs with other work, one of them in the later half, from which on it is no single event.
RECURS = 3
#: Steady steps of each side below which no verdict rests on two runs.
ENOUGH_STEPS = 3
#: Steps after the start, or after the last compile, that are left out where enough others follow.
SETTLING_STEPS = 3


class Figures(msgspec.Struct, frozen=True):
    """Measured times per step; fields as in table ``speedups``."""

    basis: str = "none"
    clock: str | None = None
    eager_ms: float | None = None
    compiled_ms: float | None = None
    eager_mean_ms: float | None = None
    compiled_mean_ms: float | None = None
    speedup: float | None = None
    speedup_low: float | None = None
    speedup_high: float | None = None
    pairs_used: int = 0
    pairs_measured: int = 0
    pairs_replayed: int = 0
    steps_timed: int = 0
    compiles_inside: int = 0
    compiles_between: int = 0

    @property
    def whole_ratio(self) -> float | None:
        """Eager over compiled with compiles that recur; None where none do."""
        if not (self.compiles_between and self.eager_mean_ms and self.compiled_mean_ms):
            return None
        return self.eager_mean_ms / self.compiled_mean_ms


class PairedRatio(msgspec.Struct, frozen=True):
    """Medians of two stances, that of the pairs' ratios, and its interval from three pairs on."""

    base_ms: float
    other_ms: float
    ratio: float
    interval: Interval | None


class _Side(msgspec.Struct, frozen=True):
    """Per-step times of one stance in one run, and how many steps they rest on."""

    clock: str
    samples: list[float]
    steps: int

    @property
    def enough(self) -> bool:
        return self.steps >= ENOUGH_STEPS


def figures(tables: Tables, pairs: pl.DataFrame, run: Row) -> Figures:
    """The best figures for the process of ``run`` (a row of ``runs`` in the pass ``cold``)."""
    own = of_process(pairs, run)
    paired = _paired(own, of_process(tables["blocks"], run))
    if paired.pairs_used >= ENOUGH_PAIRS:
        return paired
    # The same rank in the all-eager pass.
    same = (row for row in main_processes(tables, "baseline") if row["rank"] == run["rank"])
    baseline = next(same, None)
    eager = None if baseline is None else _side(tables, baseline, "eager")
    compiled = _side(tables, run, "compiled")
    if compiled is not None and eager is not None and compiled.enough and eager.enough:
        low, high = ratio_interval(eager.samples, compiled.samples)
        eager_ms, compiled_ms = median(eager.samples), median(compiled.samples)
        return Figures(
            basis="two_runs",
            clock=eager.clock if eager.clock == compiled.clock else "host",
            eager_ms=eager_ms,
            compiled_ms=compiled_ms,
            speedup=eager_ms / compiled_ms,
            speedup_low=low,
            speedup_high=high,
            pairs_measured=own.height,
            steps_timed=eager.steps + compiled.steps,
        )
    if paired.pairs_used:
        return paired
    # What is known of each side alone; a step or two, the first ones at that, are no figure.
    sides = (_side(tables, run, "eager") or eager, compiled)
    eager, compiled = (side if side and side.enough else None for side in sides)
    known = compiled or eager
    return Figures(
        clock=known.clock if known else None,
        eager_ms=median(eager.samples) if eager else None,
        compiled_ms=median(compiled.samples) if compiled else None,
        pairs_measured=own.height,
        steps_timed=sum(side.steps for side in (eager, compiled) if side),
    )


def _paired(pairs: pl.DataFrame, blocks: pl.DataFrame) -> Figures:
    used = pairs.filter(pl.col("used"))
    if used.is_empty():
        return Figures(pairs_measured=pairs.height)
    anchor = pl.lit(used["anchor_region_id"][0], dtype=pl.Int32)  # all used pairs share it
    timed = blocks.filter(
        pl.col("pair_index").is_in(used["pair_index"].to_list())
        & pl.col("anchor_region_id").eq_missing(anchor)
    )
    columns = ("eager_ms", "compiled_ms", "weight")
    timed_ms = ratio_of_pairs(*(used[name].to_list() for name in columns))
    low, high = timed_ms.interval or (None, None)
    other = pairs.filter("other_work", pl.col("speedup").is_not_null(), clock=used["clock"][0])
    steps = used.filter(~pl.col("replayed").fill_null(False))  # a replay never compiles
    # Of pairs that held other work, those whose kind recurs: compiling, or any other. What happens
    # once (a late recompile) is no part of a step; what comes back in the later half of the pairs
    # is, on average: a generation loop sets up each sequence between its steps.
    compiling, half = pl.col("compiles_inside") > 0, steps["pair_index"].median()
    kinds = (other.filter(compiling), other.filter(~compiling)) if half is not None else ()
    often = [kind for kind in kinds if kind.height >= RECURS]
    late = [kind for kind in often if (kind["pair_index"] > half).any()]
    other = pl.concat([other.clear(), *late])
    eager_mean, compiled_mean = _means(other, steps, blocks, anchor)
    return Figures(
        basis="paired_blocks",
        clock=used["clock"][0],
        eager_ms=timed_ms.base_ms,
        compiled_ms=timed_ms.other_ms,
        eager_mean_ms=eager_mean,
        compiled_mean_ms=compiled_mean,
        speedup=timed_ms.ratio,
        speedup_low=low,
        speedup_high=high,
        pairs_used=used.height,
        pairs_measured=pairs.height,
        pairs_replayed=int(used["replayed"].fill_null(False).sum()),
        steps_timed=int(timed["steps"].sum()),
        compiles_inside=int(used["compiles_inside"].sum()),
        compiles_between=0 if eager_mean is None else int(other["compiles_inside"].sum()),
    )


def _means(
    other: pl.DataFrame, used: pl.DataFrame, blocks: pl.DataFrame, anchor: pl.Expr
) -> tuple[float | None, float | None]:
    """Mean ms per step of both stances with the pairs that held ``other`` work, which recurs."""
    if other.is_empty():
        return None, None
    indexes = [*used["pair_index"], *other["pair_index"]]
    means = (
        blocks.filter(
            pl.col("pair_index").is_in(indexes), pl.col("anchor_region_id").eq_missing(anchor)
        )
        .group_by("stance")
        .agg(pl.col("duration_ms").sum() / pl.col("steps").sum())
    )
    found = dict(means.iter_rows())
    return found.get("eager"), found.get("compiled")


def ratio_of_pairs(
    base: Sequence[float], other: Sequence[float], weights: Sequence[float]
) -> PairedRatio:
    """What pairs of blocks say of two stances' milliseconds per step, each pair by its weight."""
    base_ms, other_ms = weighted_median(base, weights), weighted_median(other, weights)
    ratios = [before / after for before, after in zip(base, other, strict=True)]
    interval = None
    if len(ratios) >= ENOUGH_PAIRS:
        low, high = median_interval(ratios, weights)
        # It holds the ratio of the two medians that are shown, too.
        interval = min(low, base_ms / other_ms), max(high, base_ms / other_ms)
    return PairedRatio(base_ms, other_ms, weighted_median(ratios, weights), interval)


def _side(tables: Tables, run: Row, stance: str) -> _Side | None:
    """Times of ``stance`` in the process of ``run``: its blocks, else its single steady steps."""
    mine = of_process(tables["blocks"], run).filter(pl.col("stance") == stance)
    blocks = mine.filter(pl.col("pair_index").is_not_null())
    quiet = blocks.filter(pl.col("compiles_inside").fill_null(0) == 0)
    usable = [b for b in quiet.iter_rows(named=True) if per_step_ms(b)]
    if usable:
        clock = str(usable[0]["clock"])
        same = [b for b in usable if b["clock"] == clock]
        times = [ms for ms in map(per_step_ms, same) if ms is not None]
        return _Side(clock, times, sum(int(b["steps"]) for b in same))
    # Host times of the steps after the last compile, those that were profiled left out.
    rows = of_process(tables["steps"], run).sort("step").to_dicts()
    last = max((r["step"] for r in rows if r["compiles_inside"]), default=None)
    # Each stance settles again after its own start; a compile unsettles both.
    own = [r for r in rows if r["stance"] == stance and r["phase"] != "profile" and r["host_ms"]]
    after = [r["host_ms"] for r in own if last is None or r["step"] > last]
    times = after[SETTLING_STEPS if len(after) >= SETTLING_STEPS + ENOUGH_STEPS else 0 :]
    return _Side("host", times, len(times)) if times else None
