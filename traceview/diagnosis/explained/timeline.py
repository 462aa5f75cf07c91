"""One step of each stance on a time axis."""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from traceview.derive import causes
from traceview.derive.time.host import overhead_category
from traceview.derive.windows import Window, windows
from traceview.diagnosis.explained.lanes import Event, cut, fitted, innermost
from traceview.diagnosis.explanation import StepTimeline, TimelineLane, TimelineSpan
from traceview.diagnosis.focus import Focus
from traceview.tables import Tables
from traceview.torchtext import marks

STANCES = ("eager", "compiled")
#: Calls of the CUDA runtime that hold the host: shown although an operator is around them.
CALLS = ("sync", "alloc", "graph_launch")
#: Marks in words: how they begin, label, category as in the accounting.
_MARKS = (
    (marks.OUR_GC, "garbage collection", causes.HOST_GC),
    (marks.OUR_WORK, "the collector's own work", causes.OWN),
    (marks.DATA_LOADER, "data loading", causes.HOST_DATA_LOADING),
    (marks.GRAPH, "generated wrapper", "overhead_generated_wrapper"),
)
_NOT_SHOWN = rf"{marks.STEP}|{marks.starting(*marks.OUR_REGIONS)}"
_PREFIX = re.compile(
    rf"{marks.starting(marks.AUTOGRAD, 'aten::')}|{marks.starting(marks.OPTIMIZER)}\w+#"
)
_FRAME = re.compile(r"\(anonymous namespace\)::|<.*|\(.*")

Frames = dict[str, pl.DataFrame]


def timelines(tables: Tables, focus: Focus) -> tuple[StepTimeline, ...]:
    """Eager, then compiled: the step of median duration of each profiler window."""
    found = {
        window.stance: _timeline(window)
        for window in windows(tables)
        if (window.pass_name, window.rank) == (focus.pass_name, focus.rank) and window.steps
    }
    return tuple(found[stance] for stance in STANCES if stance in found)


def _timeline(window: Window) -> StepTimeline:
    """The first step is left out where there are others: who knows what came before it."""
    marks = window.marks[1:] if window.marks.height > 1 else window.marks
    mark = _ended(marks).sort("duration_ns", "step").row((marks.height - 1) // 2, named=True)
    step, start, end = mark["step"], mark["start_ns"], mark["end_ns"]
    frames = {
        "ops": _ended(window.ops),
        "calls": _ended(window.launches),
        "kernels": _ended(window.kernels),
    }
    done = frames["kernels"].filter(pl.col("step") == step)["end_ns"].max()
    last = max(end, done) if isinstance(done, int) else end
    return _drawn(window.stance, step, (start, last), dict(_lanes(frames, mark, last)))


def _ended(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns((pl.col("start_ns") + pl.col("duration_ns")).alias("end_ns"))


def _drawn(
    stance: str, step: int, span: tuple[int, int], lanes: dict[str, list[Event]]
) -> StepTimeline:
    start, end = span
    shown = {name: fitted(events, end - start) for name, events in lanes.items() if events}
    return StepTimeline(
        stance=stance,
        step=step,
        duration_ms=(end - start) / 1e6,
        lanes=tuple(
            TimelineLane(name, tuple(_span(event, start) for event in events))
            for name, events in shown.items()
        ),
        left_out=sum(len(lanes[name]) - len(events) for name, events in shown.items()),
    )


def _span(event: Event, zero: int) -> TimelineSpan:
    return TimelineSpan(
        (event.start - zero) / 1e6, (event.end - event.start) / 1e6, event.label, event.category
    )


def _lanes(frames: Frames, mark: dict[str, int], last: int) -> Iterator[tuple[str, list[Event]]]:
    """Name and events of each lane: the steps' thread, other launching threads, streams."""
    start, end, main = mark["start_ns"], mark["end_ns"], mark["tid"]
    ops, calls, kernels = (
        _within(frames[name], start, until)
        for name, until in (("ops", end), ("calls", end), ("kernels", last))
    )
    python = Event(start, end, "Python", causes.PYTHON)
    mine = pl.col("tid") == main
    yield "host", innermost([python, *_host_events(ops.filter(mine), calls.filter(mine))])
    launching = calls.filter((pl.col("kernels") > 0) & ~mine)["tid"].unique(maintain_order=True)
    for tid in launching:
        mine = pl.col("tid") == tid
        its = ops.filter(mine)
        autograd = its["name"].str.starts_with("autograd::").any()
        name = "autograd thread" if autograd else f"thread {tid}"
        yield name, innermost(_host_events(its, calls.filter(mine)))
    devices = kernels["device"].n_unique()
    for (device, stream), its in kernels.sort("device", "stream").group_by(
        "device", "stream", maintain_order=True
    ):
        name = f"stream {stream}" if devices == 1 else f"device {device} stream {stream}"
        yield name, list(_kernel_events(its.sort("start_ns"), mark["step"]))


def _within(frame: pl.DataFrame, start: int, end: int) -> pl.DataFrame:
    """What overlaps start to end, cut to it."""
    inside = frame.filter((pl.col("start_ns") < end) & (pl.col("end_ns") > start))
    return inside.with_columns(pl.col("start_ns", "end_ns").clip(start, end))


def _host_events(ops: pl.DataFrame, calls: pl.DataFrame) -> Iterator[Event]:
    """Marks, some calls, outermost operators; those inside one only lend their category."""
    work = pl.col("kind").eq("cpu_op") & ~pl.col("category").is_in(["overhead", "mark"])
    shown = ops.filter(~pl.col("name").str.contains(_NOT_SHOWN)).with_columns(work=work)
    parents = shown.select(pl.col("op_id").alias("parent_id"), pl.col("work").alias("inner"))
    shown = shown.join(parents, on="parent_id", how="left")
    columns = ("start_ns", "end_ns", "name", "category", "inner")
    for start, end, name, category, inner in shown.select(columns).iter_rows():
        if not inner:
            yield Event(start, end, *_host_label(name, category))
        elif category != "other":
            yield Event(start, end, "", category, drawn=False)
    calls = calls.filter(pl.col("kind").is_in(CALLS))
    for start, end, name, kind in calls.select("start_ns", "end_ns", "name", "kind").iter_rows():
        yield Event(start, end, cut(name), kind)


def _host_label(name: str, category: str) -> tuple[str, str]:
    known = next(((label, cause) for mark, label, cause in _MARKS if name.startswith(mark)), None)
    if known is not None:
        return known
    if name.endswith(marks.COMPILING):
        return cut(name), causes.HOST_COMPILE
    if category == "overhead":
        return cut(name), overhead_category(name)
    return cut(_PREFIX.sub("", name)), causes.PYTHON if category == "mark" else category


def _kernel_events(kernels: pl.DataFrame, step: int) -> Iterator[Event]:
    """One event a kernel; those that an earlier step left to the device say so."""
    columns = ("start_ns", "end_ns", "name", "cpu_op", "category", "step")
    for start, end, name, cpu_op, category, of_step in kernels.select(columns).iter_rows():
        label = kernel_label(name, cpu_op, category)
        if of_step != step:
            label = f"another step's {label}"
        yield Event(start, end, cut(label), category or "other")


def kernel_label(name: str, cpu_op: str | None, category: str | None) -> str:
    """A kernel's bare name, with the operator that launched it where Inductor did not write it."""
    bare = _FRAME.sub("", name.removeprefix("void ")).rsplit("::", 1)[-1].strip() or name
    generated = (category or "").startswith("generated_")
    if generated or not cpu_op or not cpu_op.startswith("aten::"):
        return bare
    return f"{cpu_op.removeprefix('aten::')}: {bare}"
