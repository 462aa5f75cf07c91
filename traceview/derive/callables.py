"""Table ``callable_speedups``: what torch.compile did for each callable, and which matters most.

A step is an optimizer step or an outermost call of one callable, so that a script with several has
several kinds of steps. Each that was timed has figures of its own, from its own blocks and steps.
The verdict is about one, the headline: of those measured, the one that takes most of the script's
time (its steps times the time of a compiled one). A backend that generates no code is the headline
only where nothing else was measured. What several were recorded of, blocks and profiler windows,
is then the headline's alone (`focused`).
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import polars as pl
from msgspec.structs import asdict

from traceview.derive.figures import ENOUGH_PAIRS, Figures, figures
from traceview.derive.outcome import measured_outcome
from traceview.derive.processes import Row, main_processes, of_process
from traceview.tables import Tables, from_rows
from traceview.words.numbers import plural

MEASURED_PASS = "cold"
#: torch/_dynamo/backends/debugging.py: they run the graph as it is, or through AOTAutograd only.
DEBUG_BACKENDS = frozenset(
    {
        "eager",
        "eager_noexcept",
        "eager_debug",
        "pre_dispatch_eager",
        "invoke_subgraph",
        "aot_eager",
        "aot_eager_default_partitioner",
        "aot_eager_decomp_partition",
        "aot_eager_decomp_partition_with_mode",
    }
)
#: Tables that a profiler window, or a timed block, has rows in.
_OF_WINDOWS = ("kernels", "kernel_launches", "cpu_ops", "line_ops", "profile_windows")


class Timed(msgspec.Struct, frozen=True):
    """One kind of step: the calls of ``anchor``, None: an optimizer's steps."""

    anchor: int | None
    figures: Figures
    steps: int | None
    timed_ms: float
    debug: bool

    @property
    def script_ms(self) -> float | None:
        """What its steps, all compiled, take of the script's time."""
        known = self.steps is not None and self.figures.compiled_ms is not None
        return self.steps * self.figures.compiled_ms if known else None  # type: ignore[operator]

    @property
    def weight(self) -> tuple[bool, bool, float, float]:
        measured = self.figures.speedup_low is not None
        return measured, not self.debug, self.script_ms or 0.0, self.timed_ms


def timed(tables: Tables, pairs: pl.DataFrame, run: Row) -> list[Timed]:
    """Every kind of step of which the process of ``run`` timed blocks; the headline first."""
    blocks = of_process(tables["blocks"], run)
    regions = {row["region_id"]: row for row in of_process(tables["regions"], run).to_dicts()}
    anchors = blocks["anchor_region_id"].unique(maintain_order=True).to_list()
    calls = {a: regions.get(a, {}).get("outermost_calls") for a in anchors if a is not None}
    rest = (run["steps_seen"] or 0) - sum(n or 0 for n in calls.values())
    found = []
    for anchor in anchors:
        own = _of(blocks, anchor).filter(pl.col("pair_index").is_not_null())
        found.append(
            Timed(
                anchor,
                figures(of_anchor(tables, anchor), _of(pairs, anchor), run),
                calls[anchor] if anchor is not None else max(1, rest),
                float(own["duration_ms"].sum()),
                regions.get(anchor, {}).get("backend") in DEBUG_BACKENDS,
            )
        )
    return sorted(found, key=lambda one: one.weight, reverse=True)


def of_anchor(tables: Tables, anchor: int | None) -> Tables:
    """``tables`` with the blocks and steps of one kind of step alone."""
    own = tables.copy()
    for name in ("blocks", "steps"):
        if tables.has(name) and tables[name]["anchor_region_id"].n_unique() > 1:
            own.put(name, _of(tables[name], anchor))
    return own


def focused(tables: Tables) -> None:
    """Leave in ``tables`` only the blocks and windows of the headline of each process.

    Older collectors say of no window whose steps it holds: such windows stay.
    """
    rows = tables["callable_speedups"].filter("timed").to_dicts()
    others = [row for row in rows if not row["headline"]]
    if tables.has("block_pairs"):
        pairs = tables["block_pairs"]
        theirs = pl.any_horizontal(pl.lit(False), *(_rows_of(pairs, row) for row in others))
        tables.put("block_pairs", pairs.with_columns(headline=~theirs))
    if not others:
        return
    for name in ("blocks", *_OF_WINDOWS):
        frame = tables[name]
        if name != "blocks" and tables["profile_windows"]["step_kind"].is_null().all():
            continue
        for row in others if tables.has(name) else ():
            frame = frame.filter(~_rows_of(frame, row))
        if tables.has(name):
            tables.put(name, frame)
    kept = tables["blocks"]["block_index"].implode()
    if tables.has("memory"):
        outside = pl.col("block_index").is_null() | pl.col("block_index").is_in(kept)
        tables.put("memory", tables["memory"].filter(outside))
    first = [row["region_id"] for row in rows if row["headline"]]
    is_anchor = pl.col("region_id").is_in(first)
    tables.put("regions", tables["regions"].with_columns(is_anchor=is_anchor))


def callable_speedups(tables: Tables, pairs: pl.DataFrame) -> pl.DataFrame:
    """Table ``callable_speedups`` of the process of each rank in the measured pass."""
    rows: list[Row] = []
    for run in main_processes(tables, MEASURED_PASS):
        head = {key: run[key] for key in ("pass", "rank", "pid")}
        kinds = timed(tables, pairs, run)
        regions = of_process(tables["regions"], run).to_dicts()
        names = {row["region_id"]: row["name"] for row in regions}
        by_anchor = {one.anchor: one for one in kinds}
        windows = of_process(tables["profile_windows"], run).filter(pl.col("file").is_not_null())
        # Callable → in whose steps it was called, by the steps that were watched.
        steps = of_process(tables["steps"], run).select("step", anchor="anchor_region_id")
        anchors = of_process(tables["blocks"], run)["anchor_region_id"].unique()
        if anchors.len() == 1:  # and of older collectors, which did not say whose steps those are
            steps = steps.with_columns(anchor=pl.lit(anchors[0], dtype=pl.Int32))
        calls = of_process(tables["calls"], run).select("region_id", "step").unique()
        joined = calls.join(steps.unique("step"), on="step")
        counted = joined.group_by("region_id", "anchor").len().sort("len")
        parts = {region: (anchor,) for region, anchor, _ in counted.iter_rows() if region != anchor}
        each: list[tuple[int | None, Row | None]] = [(r["region_id"], r) for r in regions]
        if None in by_anchor:
            each.insert(0, (None, None))
        for anchor, region in each:
            one = by_anchor.get(anchor)
            found = one.figures if one else Figures()
            within = parts.get(anchor) if one is None else None
            word = measured_outcome(found) or "not_measured"
            why = None
            if word == "not_measured":
                why = _why_not(
                    run, region, _of(pairs, anchor) if one else pairs.clear(), within, names
                )
            rows.append(
                {
                    **head,
                    **asdict(found),
                    "region_id": anchor,
                    "name": region["name"] if region else None,
                    "headline": one is not None and one is kinds[0],
                    "timed": one is not None,
                    "outcome": word,
                    "reason": why,
                    "within_region_id": within[0] if within else None,
                    "part_of_step": within is not None,
                    "script_ms": one.script_ms if one else None,
                    "windows": _of(windows, anchor).height if one else 0,
                }
            )
    return from_rows("callable_speedups", rows)


def _why_not(
    run: Row,
    region: Row | None,
    pairs: pl.DataFrame,
    within: tuple[int | None] | None,
    names: dict[int, str | None],
) -> str:
    """Why there is no figure of a callable, or of the optimizer's steps."""
    if region is not None and region["error"]:
        return f"torch.compile raised {str(region['error']).partition(':')[0]}"
    if region is not None and region["disable"]:
        return "disable=True leaves it in eager"
    if region is not None and not region["calls"]:
        stopped = run["exit_kind"] == "stopped"
        return "the run was stopped before it was called" if stopped else "it was never called"
    if pairs.height:
        used = pairs.filter("used").height
        reasons = Counter(str(text) for text in pairs["left_out"].drop_nulls())
        most = f": {reasons.most_common(1)[0][0]}" if reasons else ""
        return f"{used} of {plural(pairs.height, 'block pair')} usable, {ENOUGH_PAIRS} needed{most}"
    if region is not None and region["outermost_calls"] == 0:
        return "it was called only inside other compiled callables"
    if within is not None:
        whose = "the optimizer" if within[0] is None else names.get(within[0]) or "another callable"
        return f"its calls are part of the steps of {whose}"
    calls = region["calls"] if region is not None else run["steps_seen"]
    return f"it was called {plural(calls or 0, 'time')}, too few for pairs of blocks"


def _of(frame: pl.DataFrame, anchor: int | None) -> pl.DataFrame:
    return frame.filter(pl.col("anchor_region_id").eq_missing(pl.lit(anchor, dtype=pl.Int32)))


def _rows_of(frame: pl.DataFrame, row: dict[str, Any]) -> pl.Expr:
    """The rows of a table that are of the process and the kind of step of ``row``."""
    same = pl.col("anchor_region_id").eq_missing(pl.lit(row["region_id"], dtype=pl.Int32))
    same &= pl.col("pass").eq(row["pass"])
    same &= pl.col("rank").eq_missing(pl.lit(row["rank"], dtype=pl.Int32))
    if "pid" in frame.columns:
        same &= pl.col("pid").eq_missing(pl.lit(row["pid"], dtype=pl.Int64))
    return same
