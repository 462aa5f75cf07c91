"""One step of each stance on a time axis."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
import polars as pl
from msgspec.structs import replace

from traceview.derive import causes
from traceview.derive.time.host import overhead_category
from traceview.derive.windows import windows
from traceview.diagnosis.explanation import StepTimeline, TimelineLane, TimelineSpan
from traceview.diagnosis.focus import STANCES, Focus, cut
from traceview.tables import Tables
from traceview.torchtext import marks

#: Spans that one lane has room for.
MOST_SPANS = 250
#: Characters of a label.
LABEL = 60
#: Neighbours that fit into the resolution, a part of the step, become one span; it is doubled until
#: the lane fits (two neighbours reach further than it, so at the coarsest at most 161 are left).
FINEST, COARSEST = 1 / 5120, 1 / 80
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


class Event(msgspec.Struct, frozen=True):
    """Something on one thread or stream, in ns; not ``drawn``: it only gives its category."""

    start: int
    end: int
    label: str
    category: str
    drawn: bool = True


def timelines(tables: Tables, focus: Focus) -> tuple[StepTimeline, ...]:
    """Eager, then compiled: the step of median duration of each profiler window.

    The first step is left out where there are others, as what came before it is not known.
    """
    found = {}
    for window in tables.once(windows):
        if (window.pass_name, window.rank) != (focus.pass_name, focus.rank) or not window.steps:
            continue
        steps = window.marks[1:] if window.marks.height > 1 else window.marks
        mark = _ended(steps).sort("duration_ns", "step").row((steps.height - 1) // 2, named=True)
        start, end = mark["start_ns"], mark["end_ns"]
        ops, calls, kernels = map(_ended, (window.ops, window.launches, window.kernels))
        done = kernels.filter(pl.col("step") == mark["step"])["end_ns"].max()
        last = max(end, done) if isinstance(done, int) else end

        ops, calls = _within(ops, start, end), _within(calls, start, end)
        drawn, left_out = [], 0
        for name, events in _lanes(ops, calls, _within(kernels, start, last), mark):
            shown = fitted(events, last - start)
            left_out += len(events) - len(shown)
            spans = (
                TimelineSpan((e.start - start) / 1e6, (e.end - e.start) / 1e6, e.label, e.category)
                for e in shown
            )
            if shown:
                drawn.append(TimelineLane(name, tuple(spans)))
        found[window.stance] = StepTimeline(
            stance=window.stance,
            step=mark["step"],
            duration_ms=(last - start) / 1e6,
            lanes=tuple(drawn),
            left_out=left_out,
        )
    return tuple(found[stance] for stance in STANCES if stance in found)


def _ended(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns((pl.col("start_ns") + pl.col("duration_ns")).alias("end_ns"))


def _within(frame: pl.DataFrame, start: int, end: int) -> pl.DataFrame:
    """What overlaps start to end, cut to it."""
    inside = frame.filter((pl.col("start_ns") < end) & (pl.col("end_ns") > start))
    return inside.with_columns(pl.col("start_ns", "end_ns").clip(start, end))


def _lanes(
    ops: pl.DataFrame, calls: pl.DataFrame, kernels: pl.DataFrame, mark: Mapping[str, int]
) -> Iterator[tuple[str, list[Event]]]:
    """Name and events of each lane: the steps' thread, other launching threads, streams."""
    python = Event(mark["start_ns"], mark["end_ns"], "Python", causes.PYTHON)
    mine = pl.col("tid") == mark["tid"]
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
        events = []
        columns = ("start_ns", "end_ns", "name", "cpu_op", "category", "step")
        for start, end, kernel, cpu_op, category, step in (
            its.sort("start_ns").select(columns).iter_rows()
        ):
            # What an earlier step left to the device says so.
            whose = "" if step == mark["step"] else "another step's "
            label = cut(whose + kernel_label(kernel, cpu_op, category), LABEL)
            events.append(Event(start, end, label, category or "other"))
        yield name, events


def _host_events(ops: pl.DataFrame, calls: pl.DataFrame) -> Iterator[Event]:
    """Marks, some calls, outermost operators; those inside one only give it their category."""
    work = pl.col("kind").eq("cpu_op") & ~pl.col("category").is_in(["overhead", "mark"])
    shown = ops.filter(~pl.col("name").str.contains(_NOT_SHOWN)).with_columns(work=work)
    parents = shown.select(pl.col("op_id").alias("parent_id"), pl.col("work").alias("inner"))
    shown = shown.join(parents, on="parent_id", how="left")
    columns = ("start_ns", "end_ns", "name", "category", "inner")
    for start, end, name, category, inner in shown.select(columns).iter_rows():
        marked = next(
            ((said, cause) for mark, said, cause in _MARKS if name.startswith(mark)), None
        )
        if inner:
            if category != "other":
                yield Event(start, end, "", category, drawn=False)
        elif marked:
            yield Event(start, end, *marked)
        elif name.endswith(marks.COMPILING):
            yield Event(start, end, cut(name, LABEL), causes.HOST_COMPILE)
        elif category == "overhead":
            yield Event(start, end, cut(name, LABEL), overhead_category(name))
        else:
            label = cut(_PREFIX.sub("", name), LABEL)
            yield Event(start, end, label, causes.PYTHON if category == "mark" else category)
    calls = calls.filter(pl.col("kind").is_in(CALLS))
    for start, end, name, kind in calls.select("start_ns", "end_ns", "name", "kind").iter_rows():
        yield Event(start, end, cut(name, LABEL), kind)


def kernel_label(name: str, cpu_op: str | None, category: str | None) -> str:
    """A kernel's bare name, with the operator that launched it where Inductor did not write it."""
    bare = _FRAME.sub("", name.removeprefix("void ")).rsplit("::", 1)[-1].strip() or name
    generated = (category or "").startswith("generated_")
    if generated or not cpu_op or not cpu_op.startswith("aten::"):
        return bare
    return f"{cpu_op.removeprefix('aten::')}: {bare}"


def innermost(events: Iterable[Event]) -> list[Event]:
    """Nested ``events`` as disjoint stretches in order, each with its innermost drawn event.

    An event of category ``other`` takes the first known category inside it: autograd's and other
    outer operators stand for the work that they lead to.
    """
    ordered = sorted(events, key=lambda event: (event.start, -event.end))
    categories = [event.category for event in ordered]
    stretches: list[tuple[int, int, int]] = []
    open_: list[tuple[int, int]] = []  # end, index
    at = 0
    for index, event in enumerate(ordered):
        at = _advance(open_, stretches, at, event.start)
        if event.drawn:
            open_.append((min(event.end, open_[-1][0]) if open_ else event.end, index))
        elif open_ and categories[open_[-1][1]] == "other":
            categories[open_[-1][1]] = event.category
    _advance(open_, stretches, at, max((event.end for event in ordered), default=0))
    return [
        replace(ordered[index], start=start, end=end, category=categories[index])
        for start, end, index in stretches
    ]


def _advance(
    open_: list[tuple[int, int]], stretches: list[tuple[int, int, int]], at: int, until: int
) -> int:
    """Close what ends by ``until``; the stretches from ``at`` go to what was open last."""
    while open_:
        end, index = open_[-1]
        stop = min(end, until)
        if stop > at:
            same = stretches and stretches[-1][1:] == (at, index)
            stretches.append((stretches.pop()[0] if same else at, stop, index))
            at = stop
        if end > until:
            break
        open_.pop()
    return until


def fitted(events: Sequence[Event], length: int) -> list[Event]:
    """``events`` (in order) of a step of ``length`` ns, short neighbours merged until they fit."""
    part, runs = FINEST, [[event] for event in events]
    while len(runs) > MOST_SPANS and part <= COARSEST:
        runs = []
        for event in events:
            if runs and event.end - runs[-1][0].start <= length * part:
                runs[-1].append(event)
            else:
                runs.append([event])
        part *= 2
    fitting = []
    for run in runs:
        event = run[0]
        if len(run) > 1:  # as long as they are together: so a lane shows its true busy time
            times: Counter[str] = Counter()
            for each in run:
                times[each.category] += each.end - each.start
            end = min(event.start + times.total(), max(each.end for each in run))
            label = f"{len(run)}: {', '.join(dict.fromkeys(each.label for each in run))}"
            event = Event(event.start, end, cut(label, LABEL), times.most_common(1)[0][0])
        fitting.append(event)
    return fitting
