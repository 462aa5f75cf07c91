"""What the profiler windows say: accounting, step_counts, kernel_groups, read_replays, notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from math import inf
from statistics import mean
from typing import Any, cast

import msgspec
import polars as pl

from traceview.derive.host_reads import copies
from traceview.derive.kernel_groups import Origins, compile_ids, kernel_groups
from traceview.derive.time.accounting import Account, account, accounting, machine_speed
from traceview.derive.time.details import account_details
from traceview.derive.time.device import busy_ns, communication, exposed_copies_ns
from traceview.derive.time.host import gaps, marks_ns
from traceview.derive.time.host_line import compiles_elsewhere
from traceview.derive.time.profiler_cost import Faults, faults_of, waits_ns
from traceview.derive.time.read_replays import read_replays
from traceview.derive.windows import Window, windows
from traceview.parse.collected.replays import per_step_ms
from traceview.tables import Tables, from_rows
from traceview.torchtext import marks

Row = dict[str, Any]
#: Part of a step below which what the profiler took is not worth a sentence.
SHOWN = 0.02
#: Synchronising calls per step from which the host may wait in each.
_MOST_WAITS = 0.5
#: Launches that CUDA takes before it lets the host wait, less some.
_QUEUE = 900
#: Time that is the profiler's own: field of an ``Account``, what it is, why it is not shown.
_OWN_TIMES = (
    (
        "faults_ns",
        "page faults",
        "{more:,.0f} more memory pages were touched for the first time than in timed steps, since "
        "its blocks split freed memory; operators are shown without that time, each in proportion "
        "to its own",
    ),
    (
        "waits_ns",
        "waits in collectives",
        "ranks wait in them for each other, and the profiler slows every rank's host down; "
        "communication is shown without that time",
    ),
)


class _Profiled(msgspec.Struct, frozen=True):
    """A window with its account; ``step_ms``: of its rank and stance without a profiler.

    ``beside_ms``: ms a step in each of the unprofiled blocks right before and after it.
    """

    window: Window
    step_ms: float | None
    beside_ms: list[float]
    faults: Faults
    account: Account

    @classmethod
    def of(
        cls,
        tables: Tables,
        window: Window,
        step_ms: Mapping[str, float],
        *,
        graphs_hold_kernels: bool,
    ) -> _Profiled:
        rank = pl.lit(window.rank, dtype=pl.Int32)
        measured = tables["speedups"].filter(pl.col("rank").eq_missing(rank))
        timed = step_ms.get(window.stance)
        if window.stance in ("eager", "compiled") and not measured.is_empty():
            timed = measured[f"{window.stance}_ms"][0]
        blocks = window.own(tables["blocks"]).filter(
            pl.col("pair_index").is_null() & (pl.col("compiles_inside").fill_null(0) == 0)
        )
        beside = [ms for b in blocks.iter_rows(named=True) if (ms := per_step_ms(b)) is not None]
        share = pl.col("queued_ms") / pl.col("host_ms")
        queued = window.own(tables["blocks"]).select(share.median())["queued_ms"][0]
        faults = faults_of(tables, window)
        # What the profiler's page faults can have taken, and how short that may make a step.
        known = [ms for ms in (timed, mean(beside) if beside else None) if ms is not None]
        faults_ms = faults.profilers_ms(window.per_step(_events(window)) or 0.0)
        mine = account(
            window,
            None if timed is None else (min((timed, *beside)), max((timed, *beside))),
            compiles_elsewhere(tables, window),
            graphs_hold_kernels=graphs_hold_kernels,
            faults_ms=(faults_ms, min(known, default=0.0)),
            waits_ns=waits_ns(tables, window),
            queued_ms=(queued or 0.0) * min((timed or 0.0, *beside)) if beside else 0.0,
        )
        return cls(window, timed, beside, faults, mine)

    def counts(self, tables: Tables) -> Row:
        """The row of ``step_counts``."""
        window, mine = self.window, self.account
        between = gaps(window)
        gap_ns = None if between is None else (between["end"] - between["start"]).sum()
        threads = pl.col("tid").is_in(mine.line["tid"].unique().implode())
        work = window.kernels if window.on_device else window.working_operators
        is_region = pl.col("name").str.starts_with(marks.REGION)
        entering = marks_ns(window, marks.LOOKUP, marks.PREGRAPH, marks.PROLOGUE)
        own = marks_ns(window, marks.FORWARD, marks.BACKWARD, column="self_ns")
        row = {
            **window.head,
            "steps": window.steps,
            "step_ms": window.ms_per_step(mine.span_ns),
            "timed_step_ms": self.step_ms,
            "beside_step_ms": mean(self.beside_ms) if self.beside_ms else None,
            "events": window.per_step(_events(window, threads)),
            "event_cost_us": mine.cost.us,
            "page_faults": self.faults.timed,
            "profiled_page_faults": self.faults.profiled,
            "profiler_faults_ms": window.ms_per_step(mine.faults_ns) if mine.faults_ns else None,
            "unexplained_ms": window.ms_per_step(mine.cost.left),
            "kernels": window.per_step(work.height),
            "compiled_regions": window.per_step(window.ops_in_steps.filter(is_region).height),
            "cache_lookup_ms": window.ms_per_step(marks_ns(window, marks.LOOKUP)),
            "call_overhead_ms": window.ms_per_step(entering + own),
            "gap_ms": window.ms_per_step(gap_ns),
            "gaps": None if between is None else window.per_step(between.height),
        }
        if not window.on_device:
            return row
        busy, talk = busy_ns(window.main_kernels), communication(window.main_kernels)
        return row | {
            "device_busy_ms": window.ms_per_step(busy),
            "device_idle_ms": window.ms_per_step(mine.span_ns - busy),
            "launches": _calls(window, "launch", "graph_launch"),
            "graph_launches": _calls(window, "graph_launch"),
            "syncs": _calls(window, "sync"),
            "host_ms": _host_ms(tables, window),
            "exposed_communication_ms": window.ms_per_step(talk.exposed if talk else None),
            "hidden_communication_ms": window.ms_per_step(talk.hidden if talk else None),
            "exposed_copies_ms": window.ms_per_step(exposed_copies_ns(window.main_kernels)),
        }


def profile_tables(
    tables: Tables,
    step_ms: Mapping[str, float] | None = None,
    found: Sequence[Window] | None = None,
) -> dict[str, pl.DataFrame]:
    """The tables that come from profiler windows; none where nothing was profiled.

    ``step_ms`` gives a stance's milliseconds per step without a profiler, as far as it is known,
    for ranks that table ``speedups`` does not have; ``found`` are the windows, if made already.
    """
    found = windows(tables) if found is None else found
    accounted = [window for window in found if not window.lost]
    # Inductor wrote C++ kernels, yet no window recorded one: the profiler did not see them.
    written = bool((tables["generated_kernels"]["category"] == "cpp").any())
    seen = any(window.ops["category"].str.starts_with("generated_").any() for window in accounted)
    profiled = [
        _Profiled.of(tables, window, step_ms or {}, graphs_hold_kernels=written and not seen)
        for window in accounted
    ]
    made = {}
    if profiled:
        origins, known = Origins(tables), compile_ids(tables)
        accounts = [(one.window, one.account) for one in profiled]
        speeds = (
            machine_speed(one.window, one.account, one.step_ms)
            for one in profiled
            if one.step_ms is not None and one.beside_ms and one.window.steps
        )
        rows = (row for window, mine in accounts for row in accounting(window, mine))
        groups = (row for window in accounted for row in kernel_groups(window, origins, known))
        counts = from_rows("step_counts", (one.counts(tables) for one in profiled))
        read = copies(tables, counts)
        replays = (
            row
            for window, mine in accounts
            for row in read_replays(tables, window, mine, window.own(read).to_dicts())
        )
        details = pl.concat(account_details(tables, window, mine) for window, mine in accounts)
        made = {
            "accounting": from_rows("accounting", chain(rows, speeds)),
            "step_counts": counts,
            "kernel_groups": from_rows("kernel_groups", groups),
            "read_replays": from_rows("read_replays", replays),
            "account_details": details,
        }
    notes = from_rows("notes", _notes(found, profiled))
    if not notes.is_empty():
        made["notes"] = pl.concat([tables["notes"], notes]).unique(maintain_order=True)
    return made


def _notes(found: Sequence[Window], profiled: Sequence[_Profiled]) -> Iterator[Row]:
    """What the windows could not be read as they are for, and what was the profiler's own."""
    for window in found:
        head = {"pass": window.pass_name, "rank": window.rank}
        of_window = f"(profiler window of {window.stance} steps)"
        yield from (
            {**head, "what": f"{what} {of_window}", "why": why} for what, why in window.notes
        )
    for ns_of, what, why in _OWN_TIMES:
        for one in profiled:
            window, ns = one.window, getattr(one.account, ns_of)
            if ns > SHOWN * (one.account.cost.timed or inf):
                more = (one.faults.profiled or 0.0) - (one.faults.timed or 0.0)
                taken = f"{window.ms_per_step(ns):.3g} ms of the profiled {window.stance} step"
                yield {
                    "pass": window.pass_name,
                    "rank": window.rank,
                    "what": f"{taken} are the profiler's own: {what}",
                    "why": why.format(more=more),
                }


def _events(window: Window, of: pl.Expr | None = None) -> int:
    """Events that the profiler wrote in the steps, marks of steps aside."""
    of = pl.lit(True) if of is None else of
    in_steps = pl.col("step").is_not_null() & ~pl.col("name").str.contains(marks.STEP)
    return window.ops.filter(of & in_steps).height + window.launches.filter(of).height


def _host_ms(tables: Tables, window: Window) -> float | None:
    """Host time of a step in the timed blocks; None where the host waits for the device in it.

    It waits where it synchronises, and where a block has more launches than the queue holds: of
    such blocks it is an upper bound, which may be lower than that of the few first, short ones.
    """
    launches, waits = (_calls(window, *kinds) for kinds in (("launch", "graph_launch"), ("sync",)))
    if launches is None or waits is None or waits >= _MOST_WAITS:
        return None
    each = pl.col("host_ms") / pl.col("steps")
    timed = window.own(tables["blocks"]).filter(pl.col("pair_index").is_not_null(), clock="device")
    timed = timed.select(ms=each, fits=pl.col("steps") * launches < _QUEUE).drop_nulls("ms")
    if not timed["fits"].any():
        return None
    medians = timed.group_by("fits").agg(pl.col("ms").median())
    return float(cast("float", medians["ms"].min()))


def _calls(window: Window, *kinds: str) -> float | None:
    """Runtime calls of these kinds a step; None where kernels ran and no call was recorded."""
    if window.launches.is_empty() and not window.kernels.is_empty():
        return None
    return window.per_step(int(window.launches["kind"].is_in(kinds).sum()))
