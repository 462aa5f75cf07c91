"""Compile phases on a time axis, the first call, autotuning."""

from __future__ import annotations

from collections import defaultdict
from itertools import groupby
from typing import Any

import polars as pl

from traceview.derive.compiler.first_calls import LABELS, PARTS, parts_of
from traceview.derive.processes import main_processes, of_process
from traceview.diagnosis.explanation import Autotuned, FirstCallPart, PhaseSpan, WorkerTime
from traceview.diagnosis.focus import Focus
from traceview.tables import Tables

#: Spans shorter than this part of all compiling are in their parents' self time.
SHORTEST = 0.002
MOST_SPANS = 600
MOST_TUNED = 60
_WAITS = ("async_compile.wait", "async_compile.precompile")
#: What is read of a phase here: the table has more columns.
_PHASE = (
    "pass", "rank", "pid", "compile_id", "phase_id", "parent_id", "depth", "name", "started_us",
    "duration_us", "self_us", "aside",
)  # fmt: skip

Row = dict[str, Any]


def phases(tables: Tables, focus: Focus) -> tuple[PhaseSpan, ...]:
    """Phases in order of start, the short ones left to their parents; work beside them is parallel.

    Self times of phases that are not parallel add up to the time spent compiling.
    """
    told = focus.rows(tables["compile_phases"].select(_PHASE))
    rows = sorted(told, key=lambda row: row["phase_id"])
    timed = [r for r in rows if r["started_us"] is not None and r["duration_us"] is not None]
    if not timed:
        return ()
    zero = focus.first(tables["runs"]).get("started_us") or min(r["started_us"] for r in timed)
    parts = parts_of(timed)
    least = SHORTEST * sum(r["duration_us"] for r in timed if r["depth"] == 0 and not r["aside"])
    kept = {r["phase_id"]: r for r in timed if r["duration_us"] >= least}
    own = {key: row["self_us"] or 0.0 for key, row in kept.items()}
    for row in timed:
        if row["phase_id"] not in kept and row["parent_id"] in kept:
            own[row["parent_id"]] += row["duration_us"]
    spans = [_span(row, zero, parts[key], own[key]) for key, row in kept.items()]
    return tuple(sorted(spans, key=lambda span: (span.started_s, span.depth))[:MOST_SPANS])


def _span(row: Row, zero_us: float, part: str | None, self_us: float) -> PhaseSpan:
    return PhaseSpan(
        compile_id=row["compile_id"],
        name=row["name"],
        label=LABELS.get(part or "", str(row["name"])),
        started_s=(row["started_us"] - zero_us) / 1e6,
        seconds=row["duration_us"] / 1e6,
        self_seconds=self_us / 1e6,
        depth=row["depth"],
        parallel=bool(row["aside"]),
    )


def workers(tables: Tables, focus: Focus) -> tuple[WorkerTime, ...]:
    """What compiled beside each compile: a worker's C++ file is its whose time it fell into."""
    counts = pl.col("aside") | (pl.col("depth") == 0) | pl.col("name").is_in(_WAITS)
    rows = focus.rows(tables["compile_phases"].filter(counts).select(_PHASE))
    timed = [r for r in rows if r["started_us"] is not None and r["duration_us"] is not None]
    tops = [r for r in timed if r["depth"] == 0 and r["compile_id"]]
    waited: dict[str | None, float] = defaultdict(float)
    beside: dict[tuple[str | None, str], list[float]] = defaultdict(list)
    for row in rows:
        if row["name"] in _WAITS and not row["aside"]:
            waited[row["compile_id"]] += row["duration_us"] or 0.0
        elif row["aside"] and row["duration_us"] is not None:
            what = "Triton kernels" if row["name"].startswith("triton: ") else "C++ files"
            beside[row["compile_id"] or _around(row, tops), what].append(row["duration_us"])
    return tuple(
        WorkerTime(compile_id, what, len(micros), sum(micros) / 1e6, waited[compile_id] / 1e6)
        for (compile_id, what), micros in beside.items()
    )


def _around(row: Row, tops: list[Row]) -> str | None:
    if row["started_us"] is None:
        return None
    inside = (t for t in tops if 0 <= row["started_us"] - t["started_us"] <= t["duration_us"])
    return next((str(top["compile_id"]) for top in inside if not top["aside"]), None)


def first_calls(tables: Tables, focus: Focus) -> tuple[FirstCallPart, ...]:
    """Parts in order, region by region."""
    return _parts(focus.rows(tables["first_calls"]))


def warm_first_calls(tables: Tables) -> tuple[FirstCallPart, ...]:
    """The same of the warm pass's main process; () without one."""
    for run in main_processes(tables, "warm"):
        return _parts(of_process(tables["first_calls"], run).to_dicts())
    return ()


def _parts(rows: list[Row]) -> tuple[FirstCallPart, ...]:
    rows.sort(key=lambda row: (row["region_id"] or 0, PARTS.index(row["part"])))
    return tuple(FirstCallPart(row["region_id"], row["part"], row["ms"]) for row in rows)


def autotuning(tables: Tables, focus: Focus) -> tuple[Autotuned, ...]:
    """Autotuning tables in order; choices without a time (they failed) are counted only."""
    rows = sorted(focus.rows(tables["autotune_choices"]), key=lambda row: row["table_index"] or 0)
    tables_ = [list(mine) for _, mine in groupby(rows, key=lambda row: row["table_index"])]
    return tuple(found for mine in tables_[:MOST_TUNED] if (found := _tuned(mine)) is not None)


def _tuned(rows: list[Row]) -> Autotuned | None:
    best = next((row for row in rows if row["is_best"]), None)
    if best is None:
        return None
    timed = sorted((r for r in rows if r["time_ms"] is not None), key=lambda r: r["time_ms"])
    others = [row for row in timed if row is not best]
    runner_up = others[0] if others else None
    foreign = next((row for row in others if row["backend"] != best["backend"]), None)
    spent = [best[name] for name in ("benchmark_s", "precompile_s") if best[name] is not None]
    return Autotuned(
        op=best["op"] or "?",
        shapes=best["shapes"],
        winner=best["choice"] or "?",
        winner_ms=best["time_ms"],
        runner_up=runner_up["choice"] if runner_up else None,
        runner_up_ms=runner_up["time_ms"] if runner_up else None,
        best_other_backend=foreign["choice"] if foreign else None,
        best_other_backend_ms=foreign["time_ms"] if foreign else None,
        choices=len(rows),
        seconds=sum(spent) if spent else None,
    )
