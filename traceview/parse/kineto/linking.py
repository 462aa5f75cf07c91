"""Raw frames to tables: who launched what, in which step, at which line, and peaks of memory.

A device execution and the call that launched it share a ``correlation``, whatever the call is
named; all kernels of a cudagraph replay share that of one ``cudaGraphLaunch``. (The trace's own
``ac2g`` flows are incomplete and are not read.) Steps are those of our own marks, else those of the
profiler's, else there are none.

Words stay numbers until the rows leave, in batches: a trace of a million events takes little more
memory than its numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from traceview.parse.kineto.categories import UNLISTED, categorize, cpu_category
from traceview.parse.kineto.columns import Numbered
from traceview.parse.kineto.nesting import nest
from traceview.parse.kineto.reader import Events, RawFrames
from traceview.tables import empty
from traceview.torchtext.marks import OUR_LINE, OUR_STEP, PROFILER_STEP

#: Rows of a table that are put in words at a time.
BATCH = 32_768
_CALLS = (
    (re.compile(r"GraphLaunch"), "graph_launch"),
    (re.compile(r"Synchronize"), "sync"),
    (re.compile(r"Launch(?!HostFunc)"), "launch"),
    (re.compile(r"Malloc|Free|Alloc|MemCreate|MemMap|MemUnmap"), "alloc"),
    (re.compile(r"Memcpy|Memset"), "copy"),
)
_WORKLESS = ("other", "mark", "overhead")
_CONTEXT = ("region", "graph_key", "compile_id")
Batches = Iterator[tuple[str, pl.DataFrame]]


def link(raw: RawFrames) -> Batches:
    """Tables kernels, kernel_launches and cpu_ops of one window, in batches of rows.

    The rows of ``raw`` are used up. Pass, rank and stance are not yet in the tables.
    """
    marks = step_marks(raw.host)
    host, contexts = nest(raw.host.rows, raw.host.whats)
    raw.host.rows = raw.host.rows.clear()
    host = host.drop("forward_thread").with_columns(steps_of(host["start_ns"], marks))
    is_op = pl.col("op_id").is_not_null()
    calls = host.filter(~is_op).drop("op_id", "written", "parent_id", "depth", "sequence")
    ops = host.filter(is_op).drop("cpu_op_id", "correlation")
    del host
    if calls.is_empty() and raw.device.rows.is_empty():  # of a CPU alone
        yield from ((name, empty(name)) for name in ("kernels", "kernel_launches"))
        yield from _operators(ops, raw.host, contexts)
        return
    calls = calls.with_columns(ops["what"].gather(calls["cpu_op_id"]).alias("op_what"))
    linked = _linked(raw, calls, ops, marks)
    raw.device.rows = raw.device.rows.clear()
    led_to = linked.drop_nulls("correlation").group_by("correlation").agg(kernels=pl.len())
    launches = calls.join(led_to, on="correlation", how="left", maintain_order="left")
    del calls
    for batch in _batches(linked):
        yield (
            "kernels",
            _kernels(batch, raw.device, raw.host.whats, contexts, raw.about.multiprocessors),
        )
    whats = raw.host.whats
    kinds = pl.Series("kind", [call_kind(name or "") for name in whats["name"]], dtype=pl.String)
    for batch in _batches(launches):
        named = batch.with_columns(
            *_words(batch["what"], whats, "name", "tid"),
            *_words(batch["context"], contexts, "graph_key", "compile_id"),
            kinds[batch["what"]],
            pl.col("kernels").fill_null(0).cast(pl.Int32),
        )
        columns = ("step", "name", "kind", "tid", "start_ns", "duration_ns", "correlation")
        yield "kernel_launches", named.select(*columns, "kernels", "graph_key", "compile_id")
    del linked, launches, batch, named
    yield from _operators(ops, raw.host, contexts)


def call_kind(name: str) -> str:
    """Kind of a CUDA runtime or driver call, as in table ``kernel_launches``."""
    return next((kind for pattern, kind in _CALLS if pattern.search(name)), "other")


def _batches(frame: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """One at least."""
    yield frame.head(BATCH)
    for start in range(BATCH, frame.height, BATCH):
        yield frame.slice(start, BATCH)


def _words(numbers: pl.Series, words: pl.DataFrame, *names: str) -> list[pl.Series]:
    """The columns ``names`` of ``words`` for every number."""
    return [words[name][numbers] for name in names]


def _operators(ops: pl.DataFrame, host: Events, contexts: pl.DataFrame) -> Batches:
    """Table cpu_ops, with ``self_ns`` and the category of what each operator does itself."""
    known = Numbered()
    of_whats = [known[cpu_category(name or "", kind)] for name, kind, _ in host.whats.iter_rows()]
    codes = pl.Series("category", of_whats, dtype=pl.UInt8)
    own = ops.select("parent_id", "duration_ns", codes[ops["what"]])
    workless = own["category"].is_in([known[name] for name in _WORKLESS])
    outer = own["category"].gather(own["parent_id"])
    inside = (
        own.with_columns(handed_on=pl.col("category") == outer, works=~workless)
        .group_by("parent_id")
        .agg(
            children_ns=pl.col("duration_ns").sum(),
            handed_on=pl.col("handed_on").any(),
            working=pl.col("works").any(),
        )
    )
    children = ops.select("op_id").join(
        inside, left_on="op_id", right_on="parent_id", how="left", maintain_order="left"
    )
    self_ns = ops["duration_ns"] - children["children_ns"].fill_null(0)
    # aten::linear that calls aten::addmm only hands on: the work, and the count, are the callee's.
    # So does an operator of no known family that calls others, unless it takes longer than they do
    # (aten::sort, which copies its input first).
    unlisted = own["category"] == known[UNLISTED]
    delegates = children["handed_on"].fill_null(False) & ~workless & ~unlisted
    unlisted &= children["working"].fill_null(False)
    calling = pl.DataFrame({"what": ops["what"], "ns": self_ns, "inside": children["children_ns"]})
    calling = calling.filter(unlisted).group_by("what").sum()
    working = calling.filter(pl.col("ns") > pl.col("inside"))["what"]
    delegates |= unlisted & ~ops["what"].is_in(working.implode())
    work = own["category"].set(delegates, known["other"])
    ops = ops.with_columns(self_ns.clip(lower_bound=0).alias("self_ns"), work)
    categories = pl.Series([*known], dtype=pl.String)
    del own, outer, inside, children, self_ns, workless, delegates, work
    del unlisted, calling, working
    for batch in _batches(ops):
        yield (
            "cpu_ops",
            batch.drop("what", "written", "context", "category").with_columns(
                *_words(batch["what"], host.whats, "name", "kind", "tid"),
                *_words(batch["written"], host.writings, *host.writings.columns),
                *_words(batch["context"], contexts, *_CONTEXT),
                categories[batch["category"]].alias("category"),
            ),
        )


def _linked(
    raw: RawFrames, calls: pl.DataFrame, ops: pl.DataFrame, marks: pl.DataFrame
) -> pl.DataFrame:
    """Device rows with the call that launched each, and the operator around it, by numbers.

    Where no operator stands around the launch it is found by its External id.
    """
    numbered = calls.filter(pl.col("correlation").is_not_null()).drop("external_id")
    launcher = numbered.unique("correlation", keep="first", maintain_order=True).rename(
        {name: f"launch_{name}" for name in ("what", "start_ns", "duration_ns")}
    )
    linked = raw.device.rows.join(launcher, on="correlation", how="left", maintain_order="left")
    own_step = pl.lit(steps_of(linked["start_ns"], marks))
    step = pl.when(pl.col("launch_what").is_null()).then(own_step).otherwise("step")
    linked = linked.with_columns(step.alias("step")).sort("start_ns", maintain_order=True)
    lost = linked.filter(pl.col("cpu_op_id").is_null())["external_id"].drop_nulls().unique()
    found = ops.filter(ops["external_id"].is_in(lost.implode()))
    found = found.filter((raw.host.whats["kind"] == "cpu_op")[found["what"]])
    found = found.select("external_id", x_op_id="op_id", x_what="what", x_context="context")
    found = found.unique("external_id", keep="last", maintain_order=True)
    return linked.join(found, on="external_id", how="left", maintain_order="left").select(
        pl.exclude("external_id", "x_op_id", "x_what", "cpu_op_id", "op_what"),
        pl.coalesce("cpu_op_id", "x_op_id").alias("cpu_op_id"),
        pl.coalesce("op_what", "x_what").alias("op_what"),
    )


def _kernels(
    linked: pl.DataFrame,
    device: Events,
    whats: pl.DataFrame,
    contexts: pl.DataFrame,
    multiprocessors: int | None,
) -> pl.DataFrame:
    """Table kernels."""
    inner, outer = (_words(linked[name], contexts, *_CONTEXT) for name in ("context", "x_context"))
    (launch_name,) = _words(linked["launch_what"], whats, "name")
    (cpu_op,) = _words(linked["op_what"], whats, "name")
    named = linked.with_columns(
        *_words(linked["what"], device.whats, "name", "kind"),
        *_words(linked["written"], device.writings, *device.writings.columns),
        *(
            mine.zip_with(mine.is_not_null(), other)
            for mine, other in zip(inner, outer, strict=True)
        ),
        launch_name.alias("launch_name"),
        cpu_op.alias("cpu_op"),
        launch_name.str.contains("GraphLaunch").fill_null(False).alias("in_cudagraph"),
        pl.col("device").cast(pl.Int32, strict=False),  # what is none is not known
        pl.lit(multiprocessors, dtype=pl.Int32).alias("multiprocessors"),
    ).drop("what", "written", "context", "x_context", "launch_what", "op_what")
    known = ("name", "cpu_op", "kind", "launch_name")
    keys = named.select(known).unique()
    categories = [categorize(name or "", *key) for name, *key in keys.iter_rows()]
    keys = keys.with_columns(category=pl.Series(categories, dtype=pl.String))
    return named.join(keys, on=known, how="left", nulls_equal=True, maintain_order="left")


def step_marks(host: Events) -> pl.DataFrame:
    """``start_ns`` and ``end_ns`` of the marked steps, in order of start: row n is step n."""
    whats, rows = host.whats, host.rows
    annotation = whats["kind"] == "user_annotation"
    ours = annotation & whats["name"].str.contains(OUR_STEP)
    others = annotation & whats["name"].str.contains(PROFILER_STEP)
    found = rows.filter((ours if ours.any() else others).fill_null(False)[rows["what"]])
    marks = found.sort("start_ns").select(
        "start_ns", (pl.col("start_ns") + pl.col("duration_ns")).alias("end_ns")
    )
    if ours.any() or marks.is_empty():
        return marks
    # torch marks the next step before its profiler stops: that one is over before it has begun.
    worked = rows.filter((whats["kind"] != "user_annotation")[rows["what"]])["start_ns"]
    begun, end = marks.row(-1)
    return marks if worked.is_between(begun, end, closed="left").any() else marks[:-1]


def steps_of(times: pl.Series, marks: pl.DataFrame) -> pl.Series:
    """``step`` in which each of ``times`` lies, from 0; null outside of every step."""
    begun = marks["start_ns"].search_sorted(times, side="right").cast(pl.Int32)
    found = pl.DataFrame({"time": times, "step": begun - 1}).with_columns(
        pl.when(pl.col("step") >= 0).then("step").alias("step")
    )
    ends = pl.lit(marks["end_ns"]).gather(pl.col("step"))
    return found.select(pl.when(pl.col("time") < ends).then("step").alias("step"))["step"]


def line_ops(raw: RawFrames, files: Sequence[str | None]) -> pl.DataFrame:
    """Rows of the marked step, without pass, rank and stance; ``files`` as the marks count them.

    Operators of a compiled graph have no line: Dynamo's bytecode calls the whole graph in one.
    """
    steps = step_marks(raw.host)
    whats = raw.host.whats
    # No row outlasts the step: where it ends, lines are still being run, and so may be an operator
    # around us, of which the trace says that it ends with the trace, behind the line it lies in.
    end = pl.lit(steps["end_ns"].max(), dtype=pl.Int64) - pl.col("start_ns")
    shorter = pl.when(end >= 0).then(pl.min_horizontal("duration_ns", end))
    rows = raw.host.rows.with_columns(duration_ns=shorter.otherwise("duration_ns"))
    host, contexts = nest(rows, whats)
    inside = steps_of(host["start_ns"], steps).is_not_null()
    numbered = host.select("op_id", pl.when(inside).then(inside.cum_sum() - 1).alias("row_id"))
    # Calls are rows too, so the rows are numbered again.
    ops = numbered.filter(pl.col("op_id").is_not_null())["row_id"]
    host = host.with_columns(
        numbered["row_id"].alias("op_id"),
        ops.gather(host["parent_id"]).alias("parent_id"),
        *(whats[name][host["what"]] for name in whats.columns),
        *(contexts[name][host["context"]] for name in contexts.columns),
    )
    children = host.group_by("parent_id").agg(pl.col("duration_ns").sum().alias("children_ns"))
    host = host.filter(pl.col("op_id").is_not_null()).join(
        children, left_on="op_id", right_on="parent_id", how="left", maintain_order="left"
    )
    self_ns = pl.col("duration_ns") - pl.col("children_ns").fill_null(0)
    is_line = pl.col("name").str.contains(OUR_LINE)
    place = pl.format("{}:{}", "file", "line")  # null for a file that the collector did not name
    # The innermost mark around a row; none in a compiled graph.
    mark = pl.when(pl.col("graph_key").is_null()).then("line").str.split(":")
    index, names = mark.list.get(0).cast(pl.UInt32), pl.Series([*files], dtype=pl.String)
    return host.with_columns(
        self_ns=self_ns.clip(lower_bound=0),
        kind=pl.when(is_line).then(pl.lit("line")).otherwise("kind"),
        file=pl.lit(names).gather(index, null_on_oob=True),
        line=mark.list.get(1).cast(pl.Int32),
    ).select(
        *("op_id", "parent_id", "depth", "kind", "tid", "start_ns", "duration_ns", "self_ns"),
        *("sequence", "file", "line", "region"),
        pl.coalesce(pl.when(is_line).then(place), "name").alias("name"),
    )


def memory_rows(memory: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows of table ``memory`` (source ``profiler``): peak and start of every device seen.

    On a CPU the profiler counts from its own start, what was allocated before is not in it.
    """
    rows = []
    events = memory.drop_nulls(["total_allocated", "device_type"])
    for (kind, index), mine in events.group_by("device_type", "device_id", maintain_order=True):
        start = mine["total_allocated"][0] - (mine["allocated"][0] or 0)
        peak = max(start, mine["total_allocated"].max())
        device = {0: "cpu", 1: f"cuda:{index}"}.get(kind)  # c10::DeviceType
        if device is not None:
            rows.append(
                {"device": device, "source": "profiler", "peak_bytes": peak, "start_bytes": start}
            )
    return rows
