"""Tables ``host_stalls``, ``block_collections``, ``kernel_tunings``, ``busy_threads`` and
``launch_sources``: what holds the host in steps.

Garbage collections, memory that is taken from the driver or given back to it, searches for the
fastest algorithm of a library, and the own code of operators that are not torch's: what lies
between an operator's start and the operators and calls inside it. On a GPU, only as far as the
device waits for it. Triton's autotuner, which times a kernel's configurations. And the
script's other Python threads, with who waits for Python's lock.

``launch_sources``: what the launches of compiled steps are for, where it is one thing. A step that
waits for launches can't be shortened by shorter kernels, only by fewer launches, or by a host that
is not held between them. Three things make many, or hold it:

- an operator of a library that launches kernels for each matrix or part (``linalg_qr``);
- equal work on several tensors, none of which needs another's result: Inductor fuses what reads
  from each other, so each has kernels of its own;
- a value that compiled code itself reads from the device: the predicate of ``torch.cond``, and
  ``.item()`` where it is captured. The host then waits for all that was launched before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import polars as pl

from traceview.derive import causes
from traceview.derive.effects.graphs import LOWERED
from traceview.derive.facts.rows import measured
from traceview.derive.windows import GENERATED
from traceview.parse.kineto.categories import USER_KERNEL, is_foreign
from traceview.tables import Tables, from_rows, having
from traceview.torchtext import marks
from traceview.torchtext.fx import Graph, read_graph

Row = dict[str, Any]
_COMPILED = pl.col("stance") == "compiled"
_IN_STEP = pl.col("step").is_not_null()
_WINDOW = ("pass", "rank")
#: Category of table ``accounting`` → ``kind``.
_KINDS = {
    causes.GC: "collection",
    causes.HOST_GC: "collection",
    causes.ALLOCATOR: "memory",
    causes.CUSTOM_OP: "custom_op",
    causes.SEARCH: "search",
    USER_KERNEL: "custom_op",
}
_COLLECTION = "garbage collection"
#: The oldest generation: all objects are looked at.
_FULL = f"{marks.OUR_GC}2"
_RUN = ("pass", "rank")
_THREAD = (*_RUN, "name")
_LINE = ("file", "line", "function")
#: The least that Triton's ``do_bench`` does, also with a graph, for each of two configurations or
#: more: a launch, and another between two events, and a wait after each.
_LEAST_LAUNCHES, _LEAST_EVENTS, _LEAST_WAITS = 4, 4, 4
#: Less of the launches is not what a step waits for.
LEAST_SHARE = 0.5
#: Fewer tensors are not worth being one.
_LEAST_EQUAL = 8
#: Operators of a graph that read a value on the host, and what a user calls them.
_READS = {"higher_order.cond": "torch.cond", "aten._local_scalar_dense": ".item()"}


def host_stalls(tables: Tables) -> pl.DataFrame | None:
    """Table ``host_stalls``; None where no compiled step was profiled."""
    details = tables["account_details"].filter(_COMPILED)
    if details.is_empty():
        return None
    of_device = (pl.col("category") == USER_KERNEL) & (pl.col("clock") == "device")
    kind = pl.col("category").replace_strict(_KINDS, default=None, return_dtype=pl.String)
    found = details.with_columns(kind=kind).filter(pl.col("kind").is_not_null() & ~of_device)
    ops = tables["cpu_ops"].filter(_COMPILED, _IN_STEP)
    calls = tables["kernel_launches"].filter(_COMPILED, _IN_STEP, pl.col("kind") == "alloc")
    foreign = [name for name in ops["name"].unique() if is_foreign(name)]
    collected = ops.filter(pl.col("name").str.starts_with(marks.OUR_GC))
    seen = pl.concat(
        each.select(*_WINDOW, "step", what=what)
        for each, what in (
            (collected, pl.lit(_COLLECTION)),
            (calls, pl.col("name")),
            (ops.filter(pl.col("name").is_in(foreign)), pl.col("name")),
        )
    )
    steps = ops.group_by(_WINDOW).agg(all=pl.col("step").n_unique())
    full = collected.filter(pl.col("name") == _FULL).group_by(_WINDOW).agg(full=pl.len())
    seen = seen.group_by(*_WINDOW, "what").agg(pl.col("step").n_unique())
    stalls = (
        found.group_by(*_WINDOW, "kind", "what", "file", "line", "clock", maintain_order=True)
        .agg(pl.col("ms", "count").sum())
        .join(steps, on=_WINDOW, how="left", nulls_equal=True)
        .join(full, on=_WINDOW, how="left", nulls_equal=True)
        .join(seen, on=[*_WINDOW, "what"], how="left", nulls_equal=True)
        .join(_operators(tables, foreign), on="what", how="left")
        .with_columns(
            full=pl.when(pl.col("kind") == "collection").then(
                pl.col("full").fill_null(0) / pl.col("all")
            ),
            steps=pl.col("step") / pl.col("all"),
            # An operator's own line is that of its code, whatever the graph around it says.
            **{name: pl.coalesce(f"body_{name}", name) for name in ("file", "line")},
        )
        .sort("ms", descending=True, maintain_order=True)
    )
    kept = from_rows("host_stalls", []).columns
    return from_rows("host_stalls", stalls.select(kept).to_dicts())


def block_collections(tables: Tables) -> pl.DataFrame | None:
    """Table ``block_collections``; None where blocks recorded none of it.

    A window of a few steps may lie between two collections, and blocks are hundreds of steps.
    """
    blocks = tables["blocks"].filter(
        pl.col("collections").is_not_null(),
        pl.col("pair_index").is_not_null() & (pl.col("duration_ms") > 0),
        pl.col("compiles_inside").fill_null(0) == 0,
        ~pl.col("replayed").fill_null(value=False),
    )
    if blocks.is_empty():
        return None
    key = ("pass", "rank", "pid", "anchor_region_id", "stance")
    ms, steps, length = pl.col("collection_ms"), pl.col("steps"), pl.col("duration_ms")
    of_all = pl.col("full_collections").sum().over(key) > 0
    here = pl.when(of_all).then(pl.col("full_collections")).otherwise("collections") > 0
    without = length.filter(~pl.col("here")).sum() / steps.filter(~pl.col("here")).sum()
    blocks = blocks.with_columns(here=here).with_columns(
        without=pl.when((~pl.col("here")).any().over(key)).then(without.over(key))
    )
    longer = (length - steps * pl.col("without")).clip(lower_bound=0)
    of_device = pl.min_horizontal(ms, pl.when(pl.col("here")).then(longer).otherwise(0.0))
    by_clock = (
        pl.when(pl.col("clock") == "host")
        .then(ms)
        .otherwise(pl.when(pl.col("without").is_not_null()).then(of_device))
    )
    blocks = blocks.with_columns(own=by_clock).with_columns(
        step=length / steps, rest=(length - pl.col("own")) / steps
    )
    spread = [
        (pl.col(name).quantile(0.75) - pl.col(name).quantile(0.25)) / pl.col("step").median()
        for name in ("step", "rest")
    ]
    of_line = pl.col("collection_file").is_not_null()
    found = (
        blocks.sort("collection_ms", descending=True, maintain_order=True)
        .group_by(key, maintain_order=True)
        .agg(
            pl.len().alias("blocks"),
            pl.col("here").sum().alias("with"),
            steps.sum().alias("all_steps"),
            (pl.col("collections").sum() / steps.sum()).alias("count"),
            pl.col("full_collections").sum().alias("full"),
            pl.when(pl.col("own").count() > 0).then(pl.col("own").sum() / steps.sum()).alias("ms"),
            (length.sum() / steps.sum()).alias("step_ms"),
            spread[0].alias("spread"),
            spread[1].alias("spread_without"),
            pl.col("collection_file").filter(of_line).first().alias("file"),
            pl.col("collection_line").filter(of_line).first().alias("line"),
            pl.col("clock").first(),
        )
        # A process may count steps by several callables: those with most of them.
        .rename({"all_steps": "steps"})
        .sort("steps", descending=True, maintain_order=True)
        .unique(["pass", "rank", "stance"], keep="first", maintain_order=True)
    )
    kept = from_rows("block_collections", []).columns
    return from_rows("block_collections", found.select(kept).to_dicts())


def collect_periods(tables: Tables) -> pl.DataFrame | None:
    """Table ``collect_periods``; None where no call was heard.

    With some calls in a run most blocks have none: how often it is shows between the calls.
    """
    if not tables.has("collect_calls"):
        return None
    key = ("pass", "rank", "pid", "file", "line")
    found = (
        tables["collect_calls"]
        .drop_nulls(["file", "line"])
        .sort("started_us")
        .group_by(key, maintain_order=True)
        .agg(
            pl.len().cast(pl.Int32).alias("calls"),
            pl.col("host_ms").median().alias("call_ms"),
            (pl.col("started_us").diff().median() / 1e3).alias("every_ms"),
        )
        .filter(pl.col("every_ms") > pl.col("call_ms"))
        .sort("calls", descending=True, maintain_order=True)
    )
    kept = from_rows("collect_periods", []).columns
    return from_rows("collect_periods", found.select(kept).to_dicts())


def _operators(tables: Tables, names: list[str]) -> pl.DataFrame:
    """``what`` (an operator's name), its line with most time and the line that calls it."""
    events = tables["line_ops"].with_columns(pl.col("rank").fill_null(-1)).sort("start_ns")
    key = ("pass", "rank", "stance", "tid")
    ran = events.filter(pl.col("name").is_in(names))
    spans = ran.select(
        *key, "start_ns", what="name", until=pl.col("start_ns") + pl.col("duration_ns")
    )
    lines = events.filter(pl.col("kind") == "line", pl.col("file").is_not_null())
    inside = lines.join_asof(spans, on="start_ns", by=key, check_sortedness=False).filter(
        pl.col("start_ns") < pl.col("until")
    )
    body = (
        inside.group_by("what", "file", "line", maintain_order=True)
        .agg(pl.col("self_ns").sum())
        .sort("self_ns", descending=True, maintain_order=True)
        .unique("what", keep="first", maintain_order=True)
        .select("what", body_file="file", body_line="line")
    )
    called = ran.filter(pl.col("file").is_not_null()).unique(
        "name", keep="first", maintain_order=True
    )
    calls = called.select(what="name", call_file="file", call_line="line")
    return body.join(calls, on="what", how="full", coalesce=True)


def kernel_tunings(tables: Tables) -> pl.DataFrame | None:
    """Table ``kernel_tunings``; None where no compiled step was profiled.

    A kernel with a decorator that tunes it counts where the host waits and records events between
    its launches: one whose configuration is known is launched once and waits for nothing.
    """
    calls = tables["kernel_launches"].filter(_COMPILED, _IN_STEP)
    if calls.is_empty():
        return None
    ops = tables["cpu_ops"].filter(_COMPILED, _IN_STEP)
    tuned = tables["noted_lines"].filter(kind="autotune").unique("name", keep="first")
    kernels = tables["kernels"].filter(_COMPILED, _IN_STEP, pl.col("name").is_in(tuned["name"]))
    foreign = [name for name in ops["name"].unique() if is_foreign(name)]
    is_own = pl.col("cpu_op").is_in(foreign).fill_null(False)
    call = (*_WINDOW, "step", "name", "operator", "call")
    began, ended = pl.col("launch_start_ns").min(), pl.col("launch_start_ns").max()
    spans = (
        kernels.drop_nulls("launch_start_ns")
        .with_columns(
            operator=pl.when(is_own).then("cpu_op"), call=pl.when(is_own).then("cpu_op_id")
        )
        .group_by(call, maintain_order=True)
        .agg(
            *(began.alias("began"), ended.alias("ended"), pl.len().alias("launches")),
            shapes=pl.struct("grid", "block"),
        )
    )
    is_event = pl.col("name").str.contains("EventRecord")
    made = calls.select(
        *_WINDOW, "step", at="start_ns", waits=pl.col("kind") == "sync", events=is_event
    )
    between = (
        spans.join(made, on=[*_WINDOW, "step"], nulls_equal=True)
        .filter(pl.col("at").is_between("began", "ended"))
        .group_by(call)
        .agg(pl.col("waits", "events").sum())
    )
    least = {"launches": _LEAST_LAUNCHES, "events": _LEAST_EVENTS, "waits": _LEAST_WAITS}
    tunings = spans.join(between, on=call, nulls_equal=True).filter(
        *(pl.col(name) >= number for name, number in least.items())
    )
    steps = ops.group_by(_WINDOW).agg(all=pl.col("step").n_unique())
    found = (
        tunings.group_by(*_WINDOW, "name", "operator", maintain_order=True)
        .agg(
            (pl.col("ended") - pl.col("began")).sum().alias("ns"),
            pl.col("launches", "waits").sum(),
            configurations=pl.col("shapes").list.explode().n_unique(),
            steps=pl.col("step").n_unique(),
        )
        .join(steps, on=_WINDOW, nulls_equal=True)
        .join(tuned.select("name", "keys", "file", "line"), on="name")
        .join(_operators(tables, foreign), left_on="operator", right_on="what", how="left")
        .with_columns(pl.col("launches", "waits", "steps") / pl.col("all"), kernel="name")
        .with_columns(ms=pl.col("ns") / 1e6 / pl.col("all"))
        .sort("ms", descending=True, maintain_order=True)
    )
    kept = from_rows("kernel_tunings", []).columns
    return from_rows("kernel_tunings", found.select(kept).to_dicts())


def busy_threads(tables: Tables) -> pl.DataFrame | None:
    """Table ``busy_threads``; None where no look was recorded."""
    if not tables.has("thread_looks"):
        return None
    # Threads of a pool take turns: ``ThreadPoolExecutor-0_3``.
    pool = pl.col("name").str.replace(r"_\d+$", "_*")
    several = pl.col("name").n_unique().over(*_RUN, pool) > 1
    met = tables["thread_looks"].drop_nulls("name").sort(*_RUN, "look", maintain_order=True)
    of_pool = met.select(*_THREAD, who=pl.when(several).then(pool).otherwise("name")).unique()

    def named(frame: pl.DataFrame) -> pl.DataFrame:
        """With ``who`` it is: the thread itself, or its pool."""
        return frame.join(of_pool, on=_THREAD, how="inner", nulls_equal=True, maintain_order="left")

    looks, who = named(met), (*_RUN, "who")
    ran = pl.when(pl.col("ran_ms").count() > 0).then(pl.col("ran_ms").sum()).alias("ran_ms")
    together = looks.group_by(*who, "look", maintain_order=True).agg(
        ran, pl.col("waited_ms", "interval_ms").first()
    )
    threads = together.group_by(who, maintain_order=True).agg(
        ran,
        ran_looks=(pl.col("ran_ms") > 0).sum(),
        lock_wait_ms=pl.col("waited_ms").median(),
        interval_ms=pl.col("interval_ms").median(),
        looks=pl.len(),
    )
    # The function where it was seen most often, at the line seen most often there.
    places = [looks.with_columns(seen=pl.lit(1, pl.Int32)), named(tables["threads_seen"])]
    users = pl.concat([each.select(*who, *_LINE, "seen") for each in places]).drop_nulls("file")
    of_function = [*who, "file", "function"]
    lines = (
        users.with_columns(
            seen=pl.col("seen").sum().over(of_function),
            here=pl.col("seen").sum().over([*who, *_LINE]),
        )
        .sort("seen", "here", descending=True, maintain_order=True)
        .unique(who, keep="first", maintain_order=True)
    )
    timed = measured(tables)
    step = pl.lit(timed["compiled_ms"] if timed else None, dtype=pl.Float64)
    compiled = tables["blocks"].filter(stance="compiled").group_by(_RUN)
    runs = (
        named(tables["thread_blocks"].filter(stance="compiled"))
        .group_by(who)
        .agg(pl.col("ran_ms").sum())
        .join(compiled.agg(whole=pl.col("host_ms").sum()), on=_RUN, nulls_equal=True)
        .select(*who, step_ran_ms=step * pl.col("ran_ms") / pl.col("whole"))
    )
    shares = tables["step_shares"].select(*_RUN, step_waits_ms=pl.col("waiting") * step)
    found = (
        threads.join(lines.select(*who, *_LINE, "seen"), on=who, how="left", nulls_equal=True)
        .join(runs, on=who, how="left", nulls_equal=True)
        .join(shares, on=_RUN, how="left", nulls_equal=True)
        .rename({"who": "name"})
    )
    ordered = found.sort("ran_ms", descending=True, nulls_last=True, maintain_order=True)
    return from_rows("busy_threads", ordered.to_dicts())


def launch_sources(tables: Tables) -> pl.DataFrame | None:
    """Table ``launch_sources``; None where no step was profiled."""
    if tables["matched_kernels"].is_empty():
        return None
    ran = tables["matched_kernels"].filter(stance="compiled", clock="device")
    graphs = tables["graphs"].filter(kind=LOWERED)
    found: list[Row] = []
    for key, kernels in ran.partition_by(_WINDOW, as_dict=True, maintain_order=True).items():
        run = dict(zip(_WINDOW, key, strict=True))
        texts = having(graphs, **run)["text"].drop_nulls()
        library = kernels.filter(pl.col("cpu_op").str.contains("::"))
        rows = [{"kind": "operator", **row} for row in _most(library, kernels, "cpu_op")]
        generated = kernels.filter(GENERATED, pl.col("file").is_not_null())
        for row in _most(generated, kernels, "category"):
            line = f"{row['file']}:{row['line']}"
            times = max((equal_work(read_graph(text), line) for text in texts), default=0)
            if times >= max(_LEAST_EQUAL, LEAST_SHARE * row["count"]):
                rows.append({"kind": "equal", **row, "name": f"{times}"})
        # Lines whose values compiled code reads on the host, in each step.
        calls = having(tables["kernel_launches"], **run).filter(
            pl.col("step").is_not_null(), pl.col("graph_key").is_not_null(), stance="compiled"
        )
        steps, waits = calls["step"].n_unique(), calls.filter(kind="sync").height
        if steps and waits >= steps:
            nodes = (node for text in texts for node in read_graph(text).operations)
            reads = ((_READS[n.op], n.user_line) for n in nodes if n.op in _READS and n.user_line)
            for (name, line), _ in Counter(reads).most_common(1):
                file, _, number = line.rpartition(":")
                place = {"file": file, "line": int(number)}
                rows.append({"kind": "read", "name": name, **place, "count": waits / steps})
        found += [{**run, **row} for row in rows]
    return from_rows("launch_sources", found)


def _most(some: pl.DataFrame, kernels: pl.DataFrame, name: str) -> Iterator[Row]:
    """The line of ``some`` that launches most of all kernels, and what it launches."""
    by_line = some.group_by("file", "line", name=name, maintain_order=True)
    counts = by_line.agg(pl.col("count").sum())
    shares = counts.with_columns(share=pl.col("count") / kernels["count"].sum())
    yield from shares.filter(pl.col("share") >= LEAST_SHARE).iter_rows(named=True)


def equal_work(graph: Graph, line: str) -> int:
    """How often the operator that ``line`` has most is there; 0 if one needs another's result."""
    here = [node for node in graph.operations if node.user_line == line and not node.is_view]
    if not here:
        return 0
    (op, times), *_ = Counter(node.op for node in here).most_common(1)
    depth: dict[str, int] = {}
    for node in graph.operations:
        above = max((depth.get(name, 0) for name in node.inputs), default=0)
        depth[node.name] = above + (node.op == op and node.user_line == line)
    return times if max(depth[node.name] for node in here) == 1 else 0
