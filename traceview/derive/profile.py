"""What the profiler windows say: accounting, step_counts, kernel_groups and the cost of regions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from statistics import mean
from typing import Any

import polars as pl

from traceview.derive.host_reads import copies
from traceview.derive.kernel_groups import Origins, compile_ids, kernel_groups
from traceview.derive.pairs import per_step_ms
from traceview.derive.region_profile import region_costs
from traceview.derive.time.accounting import Account, account
from traceview.derive.time.busy import busy_ns, communication
from traceview.derive.time.collectives import waits_ns
from traceview.derive.time.details import account_details
from traceview.derive.time.elsewhere import compiles_elsewhere
from traceview.derive.time.faults import Faults, faults_of
from traceview.derive.time.host import (
    call_overhead_ns,
    compiled_regions,
    gaps,
    lookup_ns,
)
from traceview.derive.time.read_replays import read_replays
from traceview.derive.time.rows import accounting, machine_speed
from traceview.derive.windows import STEP_MARK, Window, windows
from traceview.tables import Tables, from_rows

Row = dict[str, Any]
#: Part of a step below which the profiler's page faults are not worth a sentence.
SHOWN = 0.02


def profile_tables(
    tables: Tables,
    step_ms: Mapping[str, float] | None = None,
    found: Sequence[Window] | None = None,
) -> dict[str, pl.DataFrame]:
    """The tables that come from profiler windows; none where nothing was profiled.

    ``step_ms`` gives a stance's milliseconds per step without a profiler, as far as it is known,
    for ranks that table ``speedups`` does not have; ``found`` are the windows, if made already.
    """
    found = list(windows(tables)) if found is None else found
    if not found:
        return {}
    made = {"region_costs": from_rows("region_costs", region_costs(tables, found))}
    told = list(_notes(found))
    accounted = [window for window in found if not window.lost]
    if accounted:
        more, of_accounts = _accounted(tables, accounted, step_ms or {})
        made, told = {**more, **made}, [*told, *of_accounts]
    return {**made, **_with_notes(tables, told)}


def _accounted(
    tables: Tables, found: Sequence[Window], step_ms: Mapping[str, float]
) -> tuple[dict[str, pl.DataFrame], list[Row]]:
    """The tables of windows of which every time is known, and what there is to note."""
    origins, known = Origins(tables), compile_ids(tables)
    hidden = _hides_kernels(tables, found)
    timed = [_timed(tables, window, step_ms) for window in found]
    beside = [beside_step_ms(tables, window) for window in found]
    faults = [faults_of(tables, window) for window in found]
    accounts = [
        account(
            window,
            _between(ms, near),
            compiles_elsewhere(tables, window),
            graphs_hold_kernels=hidden,
            faults_ms=_faults_ms(window, pages, ms, near),
            waits_ns=waits_ns(tables, window),
        )
        for window, ms, near, pages in zip(found, timed, beside, faults, strict=True)
    ]
    both = list(zip(found, accounts, strict=True))
    rows: dict[str, list[Row]] = {
        "accounting": [row for window, mine in both for row in accounting(window, mine)]
        + [
            machine_speed(window, mine, ms)
            for (window, mine), ms, near in zip(both, timed, beside, strict=True)
            if ms is not None and near and window.steps
        ],
        "step_counts": [
            _counts(window, mine, pages, ms, near)
            for (window, mine), pages, ms, near in zip(both, faults, timed, beside, strict=True)
        ],
        "kernel_groups": [row for window in found for row in kernel_groups(window, origins, known)],
    }
    details = [account_details(tables, window, mine) for window, mine in both]
    made = {name: from_rows(name, of_table) for name, of_table in rows.items()}
    made["read_replays"] = _replays(tables, both, made["step_counts"])
    told = [*_fault_notes(both, faults), *_wait_notes(both)]
    return {**made, "account_details": pl.concat(details)}, told


def _replays(
    tables: Tables, both: Sequence[tuple[Window, Account]], counts: pl.DataFrame
) -> pl.DataFrame:
    """Table ``read_replays``; ``counts``: table ``step_counts``."""
    read = copies(tables, counts)
    return from_rows(
        "read_replays",
        (
            row
            for window, mine in both
            for row in read_replays(tables, window, mine, window.own(read).to_dicts())
        ),
    )


def _timed(tables: Tables, window: Window, step_ms: Mapping[str, float]) -> float | None:
    """The step of the window's own rank and stance without a profiler, ms."""
    rank = pl.lit(window.rank, dtype=pl.Int32)
    mine = tables["speedups"].filter(pl.col("rank").eq_missing(rank))
    if mine.is_empty() or window.stance not in ("eager", "compiled"):
        return step_ms.get(window.stance)
    found: float | None = mine[f"{window.stance}_ms"][0]
    return found


def _between(timed_ms: float | None, beside_ms: Sequence[float]) -> tuple[float, float] | None:
    """Shortest and longest step without a profiler, around the window and in all blocks."""
    if timed_ms is None:
        return None
    known = (timed_ms, *beside_ms)
    return min(known), max(known)


def beside_step_ms(tables: Tables, window: Window) -> list[float]:
    """ms a step in each of the unprofiled blocks right beside a window."""
    blocks = window.own(tables["blocks"]).filter(
        pl.col("pair_index").is_null() & (pl.col("compiles_inside").fill_null(0) == 0)
    )
    return [ms for block in blocks.iter_rows(named=True) if (ms := per_step_ms(block)) is not None]


def _notes(found: Sequence[Window]) -> Iterator[Row]:
    """What the windows could not be read as they are for."""
    for window in found:
        for what, why in window.notes:
            said = f"{what} (profiler window of {window.stance} steps)"
            yield {"pass": window.pass_name, "rank": window.rank, "what": said, "why": why}


def _fault_notes(
    accounts: Sequence[tuple[Window, Account]], faults: Sequence[Faults]
) -> Iterator[Row]:
    """What the profiler's page faults took, where it is a part of the step that shows."""
    for (window, mine), pages in zip(accounts, faults, strict=True):
        if mine.faults_ns <= SHOWN * (mine.cost.timed or inf):
            continue
        more = (pages.profiled or 0.0) - (pages.timed or 0.0)
        yield {
            "pass": window.pass_name,
            "rank": window.rank,
            "what": f"{window.ms_per_step(mine.faults_ns):.3g} ms of the profiled {window.stance} "
            "step are the profiler's own: page faults",
            "why": f"{more:,.0f} more memory pages were touched for the first time than in timed "
            "steps, since its blocks split freed memory; operators are shown without that time, "
            "each in proportion to its own",
        }


def _wait_notes(accounts: Sequence[tuple[Window, Account]]) -> Iterator[Row]:
    """What the profiler lengthened collectives by, where it is a part of the step that shows."""
    for window, mine in accounts:
        if mine.waits_ns <= SHOWN * (mine.cost.timed or inf):
            continue
        yield {
            "pass": window.pass_name,
            "rank": window.rank,
            "what": f"{window.ms_per_step(mine.waits_ns):.3g} ms of the profiled {window.stance} "
            "step are the profiler's own: waits in collectives",
            "why": "ranks wait in them for each other, and the profiler slows every rank's host "
            "down; communication is shown without that time",
        }


def _with_notes(tables: Tables, rows: Iterable[Row]) -> dict[str, pl.DataFrame]:
    """Table notes with ``rows``; nothing if there are none."""
    added = from_rows("notes", rows)
    if added.is_empty():
        return {}
    return {"notes": pl.concat([tables["notes"], added]).unique(maintain_order=True)}


def _counts(
    window: Window, mine: Account, faults: Faults, step_ms: float | None, beside_ms: Sequence[float]
) -> Row:
    between = gaps(window)
    threads = pl.col("tid").is_in(mine.line["tid"].unique().implode())
    return {
        **window.head,
        "steps": window.steps,
        "step_ms": window.ms_per_step(mine.span_ns),
        "timed_step_ms": step_ms,
        "beside_step_ms": mean(beside_ms) if beside_ms else None,
        "events": window.per_step(_events(window, threads)),
        "event_cost_us": mine.cost.us,
        **faults.counts,
        "profiler_faults_ms": window.ms_per_step(mine.faults_ns) if mine.faults_ns else None,
        "unexplained_ms": None if mine.cost.left is None else window.ms_per_step(mine.cost.left),
        "kernels": window.per_step(
            (window.kernels if window.on_device else window.working_operators).height
        ),
        "compiled_regions": window.per_step(compiled_regions(window)),
        "cache_lookup_ms": window.ms_per_step(lookup_ns(window)),
        "call_overhead_ms": window.ms_per_step(call_overhead_ns(window)),
        "gap_ms": None
        if between is None
        else window.ms_per_step((between["end"] - between["start"]).sum()),
        "gaps": None if between is None else window.per_step(between.height),
        **(_device_counts(window, mine.span_ns) if window.on_device else {}),
    }


def _faults_ms(
    window: Window, pages: Faults, step_ms: float | None, beside_ms: Sequence[float]
) -> tuple[float, float]:
    """What the profiler's page faults can have taken of a step, and how short that may make it."""
    known = [ms for ms in (step_ms, mean(beside_ms) if beside_ms else None) if ms is not None]
    return pages.profilers_ms(window.per_step(_events(window)) or 0.0), min(known, default=0.0)


def _events(window: Window, of: pl.Expr | None = None) -> int:
    """Events that the profiler wrote in the steps, marks of steps aside."""
    of = pl.lit(True) if of is None else of
    marks = pl.col("step").is_not_null() & ~pl.col("name").str.contains(STEP_MARK)
    return window.ops.filter(of & marks).height + window.launches.filter(of).height


def _device_counts(window: Window, span: float) -> Row:
    kernels = window.main_kernels
    busy, talk = busy_ns(kernels), communication(kernels)
    return {
        "device_busy_ms": window.ms_per_step(busy),
        "device_idle_ms": window.ms_per_step(span - busy),
        "launches": _calls(window, "launch", "graph_launch"),
        "graph_launches": _calls(window, "graph_launch"),
        "syncs": _calls(window, "sync"),
        "exposed_communication_ms": None if talk is None else window.ms_per_step(talk.exposed),
        "hidden_communication_ms": None if talk is None else window.ms_per_step(talk.hidden),
    }


def _calls(window: Window, *kinds: str) -> float | None:
    """Runtime calls of these kinds a step; None where kernels ran and no call was recorded."""
    if window.launches.is_empty() and not window.kernels.is_empty():
        return None
    return window.per_step(int(window.launches["kind"].is_in(kinds).sum()))


def _hides_kernels(tables: Tables, found: Sequence[Window]) -> bool:
    """Inductor wrote C++ kernels, yet no window recorded one: the profiler was not told of them."""
    written = (tables["generated_kernels"]["category"] == "cpp").any()
    seen = any(window.ops["category"].str.starts_with("generated_").any() for window in found)
    return bool(written) and not seen
