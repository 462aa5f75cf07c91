"""One profiler window: its span on the shared clock of host and device, its steps, its rows.

The first fifth of a window's steps, at least one if another follows, is left out: the profiler sets
itself up in the first, which is milliseconds longer than the others, and its code comes into the
caches in some more. On a host, so is a step that was held up: one that takes twice as long as the
others for the same events, if few do. On a device, a step that is as long for work that no other
step has (``.item()`` of every 50th) parts the window, and the longer part counts. Of a trace that
is cut only whole steps count. Where the device's clock is not the host's, so that kernels start
before their launches or end after a call that waited for them, the device's times are moved.

Every function that leaves something out or moves it says so in ``Notes``.
"""

from __future__ import annotations

from functools import cached_property
from math import inf

import msgspec
import polars as pl

from traceview.derive.intervals import Interval
from traceview.parse.damage import UNKNOWN_CATEGORY
from traceview.tables import Tables, having
from traceview.torchtext.marks import OUR_GC, STEP

#: (what is concerned, what was done and why)
Notes = list[tuple[str, str]]
#: The pass, rank and stance of a window.
Key = tuple[str, int | None, str]

#: Python's garbage collections, as the collector marks them.
_COLLECTION = pl.col("name").str.starts_with(OUR_GC)
#: Events of kernels that Inductor wrote.
GENERATED = pl.col("category").str.starts_with("generated_")
#: Names of copies between host and device, as a pattern.
HOST_COPY = "^Memcpy (?:HtoD|DtoH)"
_KEY = ("pass", "rank", "stance")
_END = pl.col("start_ns") + pl.col("duration_ns")
#: Kernels may precede their launches by damage; the clocks differ if more than this part do.
_SKEWED_PART = 0.01
_MUCH_LONGER_NS = 1_000_000_000
#: One of this many steps is left out at the beginning.
_SETTLING_PART = 5
#: A step of as many events that takes this many medians was held up, unless more than this part is.
_HELD_UP = 2.0
_HELD_UP_PART = 0.25
_UNLINKED_PART = 0.1
#: A step of a cut trace is whole that has this part of the events of the fullest one.
_WHOLE = 0.9
#: Calls that return when all that was launched before is done, and how early a clock may say so.
_WAITS_FOR_ALL = ("cudaDeviceSynchronize", "cuCtxSynchronize")
_AHEAD_NS = 20_000
_LATENCY_NS = 10_000
_LOST = (
    "times of the device",
    "not recorded, though it was used: the profiler had no access to it (CUPTI), or its events are "
    "lost. What kernels took and why the device idled is not said",
)
_UNMARKED = (
    "steps",
    "none is marked in the trace (ProfilerStep#N): kernels are added up over all of it, and "
    "nothing is known per step",
)
_UNREAD = "left out: they may be the work of a device, which is then not recorded"
_ONE_THREAD = (
    "where a step's time goes",
    "not known: calls of several threads are its steps, and a profiler window records those of one",
)
_OTHERS = "left out: the step is accounted on the process that has the marked steps, or most events"


class Window(msgspec.Struct, frozen=True, dict=True):
    """The rows of one pass, rank and stance; ``span`` in ns, ``steps`` None where none is marked.

    With marked steps the span goes from the first mark's start to the last one's end or, where a
    device lags behind the host, to the end of the work that these steps launched; ``kernels`` and
    ``launches`` are those of the steps, and ``step`` is null in ``ops`` outside of them.
    ``begun_ns``: end of the device's work for earlier steps. ``notes``: what was changed, and why.
    ``lost``: the device worked, and the trace does not hold what it did; or the timed steps are
    calls of several threads, which wait for each other. The host's own time in one thread is no
    account of the step then.
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
    def clock(self) -> str:
        """``device`` or ``host``: whose time the step is accounted on."""
        return "device" if self.on_device else "host"

    @cached_property
    def host_span(self) -> Interval:
        """From the first mark of a step to the end of the last; the whole span without marks."""
        marks = self.marks
        return self.span if marks.is_empty() else _span([marks])

    @cached_property
    def marks(self) -> pl.DataFrame:
        """The marks of the steps, in order of start."""
        named = pl.col("name").str.contains(STEP)
        return self.ops.filter(named & pl.col("step").is_not_null()).sort("start_ns")

    @cached_property
    def ops_in_steps(self) -> pl.DataFrame:
        """Operators and marks inside the steps; all of them where no steps are marked."""
        return self.ops.filter(pl.col("step").is_not_null()) if self.steps else self.ops

    @cached_property
    def working_operators(self) -> pl.DataFrame:
        """Operators inside the steps that do work on a CPU, on any thread."""
        idle = ("mark", "other", "overhead")
        return self.ops_in_steps.filter(~pl.col("category").is_in(idle))

    @cached_property
    def main_kernels(self) -> pl.DataFrame:
        """The kernels of the device that was busy longest, which the step is accounted on."""
        return _of_one_device(self.kernels, [])

    def own(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The rows of a table that are of its pass, rank and, where the table has one, stance."""
        return _own(frame, (self.pass_name, self.rank, self.stance))

    def per_step(self, value: float) -> float | None:
        """``value`` of the window per step; None where no steps are known."""
        return value / self.steps if self.steps else None

    def ms_per_step(self, ns: float | None) -> float | None:
        """Nanoseconds of the window as milliseconds per step; None where they are not known."""
        return None if ns is None else self.per_step(ns / 1e6)


def far_longer(
    unexplained_ms: float | None, timed_ms: float | None, beside_ms: float | None
) -> bool:
    """Whether the profiled step, less all that the profiler can have cost, takes twice as long.

    Such a window shows other steps than the blocks, and says nothing about those. A script that
    ended before its last window was done, say, leaves only the first one, in which cudagraphs were
    still being recorded.
    """
    if unexplained_ms is None or timed_ms is None:
        return False
    return -unexplained_ms > max(timed_ms, beside_ms or 0.0)


def windows(tables: Tables) -> list[Window]:
    """The profiler windows of a run that hold an event, in the order of the tables.

    They follow from what was read alone: ``tables.once(windows)`` finds those of ``derive``.
    """
    keys = pl.concat([tables[name].select(_KEY) for name in ("cpu_ops", "kernels")])
    return [_window(tables, key) for key in keys.unique(maintain_order=True).iter_rows()]


def _window(tables: Tables, key: Key) -> Window:
    kernels, launches, ops, blocks, merged = (
        _own(tables[name], key)
        for name in ("kernels", "kernel_launches", "cpu_ops", "blocks", "traces")
    )
    notes = [
        (f"other processes in the same trace ({processes:,}; events: {events:,})", _OTHERS)
        for processes, events in merged.select("other_processes", "other_events").iter_rows()
        if (events or 0) > 0
    ]
    # The clock of unprofiled blocks is a device's where its memory was in use.
    launched = launches["kind"].is_in(["launch", "graph_launch"]).any()
    # Whether the trace of a window, a run's own or a left one, ends before its end, or holds work
    # of a kind that is not read.
    files = [*_own(tables["profile_windows"], key)["file"], *merged["name"]]
    damage = tables["unreadable"].filter(pl.col("file").is_in(files))
    cut = "truncated" in damage["kind"]
    unread = damage.filter(kind=UNKNOWN_CATEGORY)["example"].to_list()
    notes += [
        (f"events of categories that are not known here ({found})", _UNREAD) for found in unread
    ]
    on_device = kernels.height > 0 or "device" in blocks["clock"] or bool(launched or unread)
    kernels = _in_step_with_host(_plausible(kernels, [launches, ops], notes), launches, notes)
    marks = ops.filter(pl.col("name").str.contains(STEP) & pl.col("step").is_not_null())
    if cut and not marks.is_empty():
        marks = _whole_steps(marks, [kernels, ops] if on_device else [ops], notes)
    lost = on_device and (kernels.is_empty() or (cut and marks.is_empty()))
    if lost:
        notes.append(_LOST)
    if (blocks["other_thread_calls"] > 0).any():
        lost = True
        notes.append(_ONE_THREAD)
    if marks.is_empty():
        busiest = ops.group_by("tid").agg(pl.col("self_ns").sum()).sort("self_ns", descending=True)
        tid = busiest["tid"][0] if busiest.height else None
        span, steps, begun = _span([ops, kernels]), None, None
        notes.append(_UNMARKED)
    else:
        # In the first steps the profiler settles.
        numbers = marks["step"].unique().sort()
        settling = numbers.len() // _SETTLING_PART or int(numbers.len() > 1)
        marks = marks.filter(pl.col("step").is_in(numbers[settling:].implode()))
        leave_out = _without_rare_work if on_device else _without_held_up
        marks = leave_out(marks, ops, blocks, notes)
        mine = pl.col("step").is_in(marks["step"].implode())
        earlier = kernels.filter(pl.col("step") < marks["step"].min())
        begun = (earlier["start_ns"] + earlier["duration_ns"]).max()
        ops = ops.with_columns(step=pl.when(mine).then("step"))
        kernels, launches = kernels.filter(mine), launches.filter(mine)
        _of_one_device(kernels, notes)
        without = kernels["launch_start_ns"].null_count()
        if without > _UNLINKED_PART * kernels.height:
            what = f"the launches of {without} of {kernels.height} kernels"
            notes.append((what, "not recorded: why the device idled before them is not known"))
        tid, steps = marks["tid"][0], marks["step"].n_unique()
        span = _span([marks, kernels], from_first=True)
    return Window(
        *key, span, steps, tid, kernels, launches, ops, on_device, begun, tuple(notes), lost
    )


def _own(frame: pl.DataFrame, key: Key) -> pl.DataFrame:
    """The rows of a table that are of a pass, rank and, where the table has one, stance."""
    pass_name, rank, stance = key
    mine = having(frame, **{"pass": pass_name}, rank=rank)
    return having(mine, stance=stance) if "stance" in frame.columns else mine


def _span(frames: list[pl.DataFrame], *, from_first: bool = False) -> Interval:
    """From the first start (of the first frame alone, if so asked) to the last end."""
    starts = pl.concat([f["start_ns"] for f in (frames[:1] if from_first else frames)]).to_list()
    ends = pl.concat([f["start_ns"] + f["duration_ns"] for f in frames]).to_list()
    return min(starts), max(ends)


def _plausible(kernels: pl.DataFrame, host: list[pl.DataFrame], notes: Notes) -> pl.DataFrame:
    """``kernels`` less those that outlast all that the host recorded by more than a second."""
    spans = pl.concat([frame.select("start_ns", end=_END) for frame in host])
    if spans.is_empty():
        return kernels
    recorded = int(spans["end"].max() - spans["start_ns"].min())  # type: ignore[operator, arg-type]
    longest = recorded + _MUCH_LONGER_NS
    kept = kernels.filter(pl.col("duration_ns").is_between(0, longest))
    if kept.height < kernels.height:
        count = kernels.height - kept.height
        notes.append(
            (f"{count} of {kernels.height} kernels", "left out: longer than the whole window")
        )
    return kept


def _in_step_with_host(kernels: pl.DataFrame, launches: pl.DataFrame, notes: Notes) -> pl.DataFrame:
    """``kernels`` on the host's clock: moved, if the two clocks cannot be one."""
    early = (kernels["launch_start_ns"] - kernels["start_ns"]).drop_nulls()
    skew, why = 0, "kernels start before their launches"
    if (early > 0).sum() > _SKEWED_PART * early.len():
        skew = int(early.quantile(1 - _SKEWED_PART, "nearest") or 0)
    if not skew:
        skew, why = -_ahead_ns(kernels, launches), "kernels end after calls that waited for them"
    if not skew:
        return kernels
    notes.append(("times of the device", f"moved by {skew / 1000:.1f} µs: {why}"))
    return kernels.with_columns(pl.col("start_ns") + skew)


def _ahead_ns(kernels: pl.DataFrame, launches: pl.DataFrame) -> int:
    """How far the device's clock is ahead of the host's: calls that wait return before kernels end.

    Only if most of them do. It is so far at least. At most it is the shortest way of a kernel from
    its launch, which is a latency longer on a device that was idle once: a window begins with such
    a one.
    """
    waits = launches.filter(pl.col("name").is_in(_WAITS_FOR_ALL)).sort("start_ns")
    done = kernels.drop_nulls("launch_start_ns").sort("launch_start_ns")
    if waits.is_empty() or done.is_empty():
        return 0
    ends = done.select(at="launch_start_ns", end=_END.cum_max())
    joined = waits.select(at="start_ns", returned=_END).join_asof(ends, on="at").drop_nulls()
    over = joined["end"] - joined["returned"]
    if (over > _AHEAD_NS).sum() <= over.len() / 2:
        return 0
    shortest: int = min((done["start_ns"] - done["launch_start_ns"]).to_list())
    longest: int = max(over.to_list())
    return max(min(longest, shortest), shortest - _LATENCY_NS)


def _whole_steps(marks: pl.DataFrame, events: list[pl.DataFrame], notes: Notes) -> pl.DataFrame:
    """``marks`` of a cut trace less those of steps that lost events of a kind of ``events``.

    What only one step has is no measure of a whole one: then none is kept.
    """
    kept = marks
    for frame in events:
        counts = frame.drop_nulls("step").group_by("step").len()
        whole = counts.filter(pl.col("len") >= _WHOLE * pl.col("len").max())["step"]
        kept = kept.filter(pl.col("step").is_in(whole.implode()))
    if kept["step"].n_unique() < 2:
        kept = kept.clear()
    gone = marks["step"].n_unique() - kept["step"].n_unique()
    if gone:
        steps = f"{gone} of {marks['step'].n_unique()} profiled steps"
        notes.append((steps, "left out: the trace is cut, and holds them in part"))
    return kept


def _of_one_device(kernels: pl.DataFrame, notes: Notes) -> pl.DataFrame:
    """``kernels`` of the device that was busy longest, which the step is accounted on."""
    if kernels["device"].n_unique() < 2:
        return kernels
    busy = kernels.group_by("device").agg(pl.col("duration_ns").sum()).sort("duration_ns")
    main = busy["device"][-1]
    others = ", ".join(str(device) for device in sorted(busy["device"][:-1].drop_nulls()))
    notes.append((f"time of device {others}", f"not accounted: device {main} was busy longest"))
    return kernels.filter(pl.col("device") == main)


def _without_rare_collections(
    ops: pl.DataFrame, marks: pl.DataFrame, blocks: pl.DataFrame
) -> pl.DataFrame:
    """``ops`` less Python's garbage collections, if a typical timed block holds none.

    Then they hold up a step of the window by chance, and the timed step has nothing of them.
    """
    paired = blocks.filter(pl.col("pair_index").is_not_null())
    if (typical := paired["collections"].median()) is not None:
        return ops.filter(~_COLLECTION) if typical == 0 else ops
    # Older recordings do not count them.
    collected = ops.filter(_COLLECTION & pl.col("step").is_in(marks["step"].implode()))
    steps = paired.select(pl.col("steps").median().cast(pl.Float64))["steps"][0]
    rare = collected["step"].n_unique() * (steps or inf) < marks.height
    return ops.filter(~_COLLECTION) if rare else ops


def _without_held_up(
    marks: pl.DataFrame, ops: pl.DataFrame, blocks: pl.DataFrame, notes: Notes
) -> pl.DataFrame:
    """``marks`` less those of steps that took far longer than others with as many events."""
    counted = _without_rare_collections(ops, marks, blocks)
    events = counted.group_by("step").agg(pl.len().alias("events"))
    judged = marks.join(events, on="step", how="left", maintain_order="left")
    usual = (pl.col("duration_ns") / pl.col("duration_ns").median()).over("events")
    held_up = judged.select(usual > _HELD_UP).to_series()
    count = int(held_up.sum())
    if not count or count > _HELD_UP_PART * marks.height:
        return marks
    why = "left out: twice as long as others with the same events"
    notes.append((f"{count} of {marks.height} profiled steps", why))
    return marks.filter(~held_up)


def _without_rare_work(
    marks: pl.DataFrame, ops: pl.DataFrame, blocks: pl.DataFrame, notes: Notes
) -> pl.DataFrame:
    """The most steps in a row of which none is far longer for operators that it alone has.

    Or for a garbage collection, where those are rare.
    """
    collected = ops.join(_without_rare_collections(ops, marks, blocks), on="op_id", how="anti")
    named = ops.filter(pl.col("kind") == "cpu_op").group_by("name").agg(pl.col("step").unique())
    alone = named.filter(pl.col("step").list.len() == 1)["step"].explode()
    steps = marks.group_by("step").agg(pl.col("duration_ns").sum()).sort("step")
    found = steps.with_columns(
        rare=(pl.col("duration_ns") > _HELD_UP * pl.col("duration_ns").median())
        & pl.col("step").is_in(pl.concat([alone, collected["step"]]).implode())
    )
    count = int(found["rare"].sum())
    if not count or count > _HELD_UP_PART * steps.height:
        return marks
    usual = found.with_columns(part=pl.col("rare").cum_sum()).filter(~pl.col("rare"))
    parts = usual.group_by("part").agg("step").sort(pl.col("step").list.len(), "part")
    kept = marks.filter(pl.col("step").is_in(parts["step"][-1].implode()))
    gone = marks.height - kept.height
    why = f"left out: {count} of them took far longer, for work that no other step has"
    notes.append((f"{gone} of {marks.height} profiled steps", why))
    return kept
