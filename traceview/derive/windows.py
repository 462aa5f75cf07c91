"""One profiler window: its span on the shared clock of host and device, its steps, its rows.

The first fifth of a window's steps, at least one if another follows, is left out: the profiler sets
itself up in the first, which is milliseconds longer than the others, and its code comes into the
caches in some more. On a host, so is a step that was held up: one that takes twice as long as the
others for the same events, if few do. Of a trace that is cut only whole steps count. Where the
device's clock is not the host's, so that kernels start before their launches or end after a call
that waited for them, the device's times are moved.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import msgspec
import polars as pl

from traceview.derive.intervals import Interval
from traceview.derive.window_checks import (
    in_step_with_host,
    note_unlinked,
    of_one_device,
    plausible,
    whole_steps,
    without_held_up,
    without_settling,
)
from traceview.tables import Tables

STEP_MARK = r"^(?:traceview step |ProfilerStep#)\d+$"
_KEY = ("pass", "rank", "stance")
_LOST = (
    "times of the device",
    "not recorded, though it was used: the profiler had no access to it (CUPTI), or its events are "
    "lost. What kernels took and why the device idled is not said",
)

_OTHERS = "left out: the step is accounted on the process that has the marked steps, or most events"


class Window(msgspec.Struct, frozen=True):
    """The rows of one pass, rank and stance; ``span`` in ns, ``steps`` None where none is marked.

    With marked steps the span goes from the first mark's start to the last one's end or, where a
    device lags behind the host, to the end of the work that these steps launched; ``kernels`` and
    ``launches`` are those of the steps, and ``step`` is null in ``ops`` outside of them.
    ``begun_ns``: end of the device's work for earlier steps. ``notes``: what was changed, and why.
    ``lost``: the device worked, and the trace does not hold what it did: nothing can be said of its
    time, and the host's own is no account of the step.
    """

    pass_name: str
    rank: int | None
    stance: str
    span: Interval
    steps: int | None
    main_tid: str | None
    kernels: pl.DataFrame
    launches: pl.DataFrame
    ops: pl.DataFrame
    on_device: bool
    begun_ns: int | None = None
    notes: tuple[tuple[str, str], ...] = ()
    lost: bool = False

    @property
    def head(self) -> dict[str, str | int | None]:
        return {"pass": self.pass_name, "rank": self.rank, "stance": self.stance}

    @property
    def host_span(self) -> Interval:
        """From the first mark of a step to the end of the last; the whole span without marks."""
        marks = self.marks
        if marks.is_empty():
            return self.span
        return _span([marks])

    @property
    def marks(self) -> pl.DataFrame:
        """The marks of the steps, in order of start."""
        named = pl.col("name").str.contains(STEP_MARK)
        return self.ops.filter(named & pl.col("step").is_not_null()).sort("start_ns")

    @property
    def ops_in_steps(self) -> pl.DataFrame:
        """Operators and marks inside the steps; all of them where no steps are marked."""
        return self.ops.filter(pl.col("step").is_not_null()) if self.steps else self.ops

    @property
    def working_operators(self) -> pl.DataFrame:
        """Operators inside the steps that do work on a CPU, on any thread."""
        idle = ("mark", "other", "overhead")
        return self.ops_in_steps.filter(~pl.col("category").is_in(idle))

    @property
    def main_kernels(self) -> pl.DataFrame:
        """The kernels of the device that was busy longest, which the step is accounted on."""
        return of_one_device(self.kernels, [])

    def own(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The rows of a table that are of its pass, rank and, where the table has one, stance."""
        return frame.filter(_is_of(frame, self.pass_name, self.rank, self.stance))

    def per_step(self, value: float) -> float | None:
        """``value`` of the window per step; None where no steps are known."""
        return value / self.steps if self.steps else None

    def ms_per_step(self, ns: float) -> float | None:
        """Nanoseconds of the window as milliseconds per step."""
        return self.per_step(ns / 1e6)


def far_longer(
    unexplained_ms: float | None, timed_ms: float | None, beside_ms: float | None
) -> bool:
    """Whether the profiled step, less all that the profiler can have cost, takes twice as long.

    Such a window shows other steps than the blocks, and tells nothing of those. A script that
    ended before its last window was done, say, leaves only the first one, in which cudagraphs were
    still being recorded.
    """
    if unexplained_ms is None or timed_ms is None:
        return False
    return -unexplained_ms > max(timed_ms, beside_ms or 0.0)


def windows(tables: Tables) -> Iterator[Window]:
    """The profiler windows of a run that hold an event, in the order of the tables."""
    keys = pl.concat([tables[name].select(_KEY) for name in ("cpu_ops", "kernels")])
    for pass_name, rank, stance in keys.unique(maintain_order=True).iter_rows():
        frames = (tables[name] for name in ("kernels", "kernel_launches", "cpu_ops"))
        key = (pass_name, rank, stance)
        mine = [frame.filter(_is_of(frame, *key)) for frame in frames]
        cut, others = _is_cut(tables, key), _left_out(tables, key)
        yield _window(key, mine, cut=cut, timed_on=_clocks(tables, key), notes=others)


def _is_cut(tables: Tables, key: tuple[str, int | None, str]) -> bool:
    """Whether the trace of a window, a run's own or a left one, ends before its end."""
    own, left = (
        tables[table].filter(_is_of(tables[table], *key))[name]
        for table, name in (("profile_windows", "file"), ("traces", "name"))
    )
    cut = tables["unreadable"].filter(kind="truncated")["file"]
    return bool(cut.is_in([*own, *left]).any())


def _left_out(tables: Tables, key: tuple[str, int | None, str]) -> list[tuple[str, str]]:
    """What a window's trace holds of other processes."""
    merged = tables["traces"].filter(_is_of(tables["traces"], *key) & (pl.col("other_events") > 0))
    return [
        (f"other processes in the same trace ({processes:,}; host events: {events:,})", _OTHERS)
        for processes, events in merged.select("other_processes", "other_events").iter_rows()
    ]


def _clocks(tables: Tables, key: tuple[str, int | None, str]) -> set[str]:
    """The clocks of the window's unprofiled blocks; a device's where its memory was in use."""
    return set(tables["blocks"].filter(_is_of(tables["blocks"], *key))["clock"].drop_nulls())


def _is_of(frame: pl.DataFrame, pass_name: str, rank: int | None, stance: str) -> pl.Expr:
    mine = pl.col("pass").eq(pass_name)
    mine &= pl.col("rank").eq_missing(pl.lit(rank, dtype=pl.Int32))
    return mine & pl.col("stance").eq(stance) if "stance" in frame.columns else mine


def _window(
    key: tuple[str, int | None, str],
    frames: list[pl.DataFrame],
    *,
    cut: bool = False,
    timed_on: Collection[str] = (),
    notes: Iterable[tuple[str, str]] = (),
) -> Window:
    kernels, launches, ops = frames
    notes = [*notes]
    used = "device" in timed_on or bool(launches["kind"].is_in(["launch", "graph_launch"]).any())
    on_device = kernels.height > 0 or used
    kernels = in_step_with_host(plausible(kernels, [launches, ops], notes), launches, notes)
    marks = ops.filter(pl.col("name").str.contains(STEP_MARK) & pl.col("step").is_not_null())
    if cut and not marks.is_empty():
        marks = whole_steps(marks, [kernels, ops] if on_device else [ops], notes)
    lost = on_device and (kernels.is_empty() or (cut and marks.is_empty()))
    if lost:
        notes.append(_LOST)
    if marks.is_empty():
        busiest = ops.group_by("tid").agg(pl.col("self_ns").sum()).sort("self_ns", descending=True)
        tid = busiest["tid"][0] if busiest.height else None
        span = _span([ops, kernels])
        return Window(
            *key, span, None, tid, kernels, launches, ops, on_device, None, tuple(notes), lost
        )
    marks = without_settling(marks)
    if not on_device:
        marks = without_held_up(marks, ops, notes)
    mine = pl.col("step").is_in(marks["step"].implode())
    earlier = kernels.filter(pl.col("step") < marks["step"].min())
    begun = (earlier["start_ns"] + earlier["duration_ns"]).max()
    ops = ops.with_columns(step=pl.when(mine).then("step"))
    kernels, launches = kernels.filter(mine), launches.filter(mine)
    of_one_device(kernels, notes)
    note_unlinked(kernels, notes)
    span = _span([marks, kernels], from_first=True)
    return Window(
        *key, span, marks["step"].n_unique(), marks["tid"][0], kernels, launches, ops, on_device,
        begun, tuple(notes), lost,
    )  # fmt: skip


def _span(frames: list[pl.DataFrame], *, from_first: bool = False) -> Interval:
    """From the first start (of the first frame alone, if so asked) to the last end."""
    starts = pl.concat([f["start_ns"] for f in (frames[:1] if from_first else frames)]).to_list()
    ends = pl.concat([f["start_ns"] + f["duration_ns"] for f in frames]).to_list()
    return min(starts), max(ends)
