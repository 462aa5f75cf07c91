"""What the profiler windows say: accounting, step_counts, kernel_groups, read_replays, notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from math import inf
from statistics import mean
from typing import Any

import polars as pl

from traceview.derive.host_reads import copies
from traceview.derive.kernel_groups import Origins, compile_ids, kernel_groups
from traceview.derive.pairs import per_step_ms
from traceview.derive.time.accounting import Account, account, accounting, machine_speed
from traceview.derive.time.details import account_details
from traceview.derive.time.device import busy_ns, communication
from traceview.derive.time.host import call_overhead_ns, compiled_regions, gaps, lookup_ns
from traceview.derive.time.host_line import compiles_elsewhere
from traceview.derive.time.profiler_cost import Faults, faults_of, waits_ns
from traceview.derive.time.read_replays import read_replays
from traceview.derive.windows import Window, windows
from traceview.tables import Tables, from_rows
from traceview.torchtext.marks import STEP

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
    # What the windows could not be read as they are for.
    notes = [
        {
            "pass": window.pass_name,
            "rank": window.rank,
            "what": f"{what} (profiler window of {window.stance} steps)",
            "why": why,
        }
        for window in found
        for what, why in window.notes
    ]
    made: dict[str, pl.DataFrame] = {}
    accounted = [window for window in found if not window.lost]
    if accounted:
        made, of_accounts = _accounted(tables, accounted, step_ms or {})
        notes += of_accounts
    added = from_rows("notes", notes)
    if not added.is_empty():
        made["notes"] = pl.concat([tables["notes"], added]).unique(maintain_order=True)
    return made


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
            None if ms is None else (min((ms, *near)), max((ms, *near))),
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
    made = {name: from_rows(name, of_table) for name, of_table in rows.items()}
    read = copies(tables, made["step_counts"])
    replays = (
        read_replays(tables, window, mine, window.own(read).to_dicts()) for window, mine in both
    )
    made["read_replays"] = from_rows("read_replays", chain.from_iterable(replays))
    details = [account_details(tables, window, mine) for window, mine in both]
    made["account_details"] = pl.concat(details)
    return made, [*_fault_notes(both, faults), *_wait_notes(both)]


def _timed(tables: Tables, window: Window, step_ms: Mapping[str, float]) -> float | None:
    """The step of the window's own rank and stance without a profiler, ms."""
    rank = pl.lit(window.rank, dtype=pl.Int32)
    mine = tables["speedups"].filter(pl.col("rank").eq_missing(rank))
    if mine.is_empty() or window.stance not in ("eager", "compiled"):
        return step_ms.get(window.stance)
    found: float | None = mine[f"{window.stance}_ms"][0]
    return found


def beside_step_ms(tables: Tables, window: Window) -> list[float]:
    """ms a step in each of the unprofiled blocks right before and after a window."""
    blocks = window.own(tables["blocks"]).filter(
        pl.col("pair_index").is_null() & (pl.col("compiles_inside").fill_null(0) == 0)
    )
    return [ms for block in blocks.iter_rows(named=True) if (ms := per_step_ms(block)) is not None]


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
    marks = pl.col("step").is_not_null() & ~pl.col("name").str.contains(STEP)
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
    """Inductor wrote C++ kernels, yet no window recorded one: the profiler did not see them."""
    written = (tables["generated_kernels"]["category"] == "cpp").any()
    seen = any(window.ops["category"].str.starts_with("generated_").any() for window in found)
    return bool(written) and not seen
