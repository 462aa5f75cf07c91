"""Tables ``outside_work``, ``step_shares`` and ``script_ends``: time outside of compiled code.

And ``loader_restarts``: how often a loader's workers start again.

In a step that is loading data, Python of the script's own, copies that hold the host, and operators
in eager; on a GPU, loading, Python and copies count only as far as the device waits for them, and
an operator counts with its kernels and with what the device waits for their launches.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from traceview.derive.causes import LAUNCH_BOUND, UNNAMED
from traceview.derive.facts.places import first_call
from traceview.derive.facts.rows import first_rank, rows
from traceview.derive.origins.tree import nearest, parents
from traceview.derive.origins.work import listed
from traceview.derive.outcome import CUT_SHORT
from traceview.derive.time.details import TO_DEVICE, TO_HOST
from traceview.parse.kineto.categories import FUSIBLE
from traceview.tables import Tables, from_rows, having
from traceview.torchtext import marks

Row = dict[str, Any]

_COMPILED = pl.col("stance") == "compiled"
_IN_STEP = pl.col("step").is_not_null()
#: Categories of table ``accounting``: of a host, and of a device that waits for the host.
_LOADING = ("data_loading", "idle_data_loading")
_PYTHON = ("python", "idle_python")
_COPIES = ("idle_copy_wait",)
_PAGEABLE = "Device -> Pageable"
_PLACE = ("file", "line")
_COLLECTIVE = "c10d::"
_COALESCE, _MAKE_SPARSE = "aten::_coalesce", "aten::sparse_coo_tensor"
#: Operators that an optimizer calls once for all tensors of a group.
_ON_LISTS = r"^aten::(_foreach|_fused)_"
#: Random numbers, which a generator of the script's keeps out of compiled code.
_DRAWS = r"^aten::(uniform|normal|bernoulli|random|exponential|poisson|multinomial|randperm)_?$"
#: What compiled code would call as well.
_SAME = ~pl.col("category").is_in([*FUSIBLE, "other"]) | pl.col("what").str.contains(_DRAWS)
#: Shorter stretches of Python are the way from one operator to the next, not work of their own.
SHORT_PYTHON_MS = 0.05


def loader_restarts(tables: Tables) -> pl.DataFrame | None:
    """Table ``loader_restarts``; None where no iterator with workers was made.

    Several in one step are one loop's each: what counts is how many there are in all steps.
    """
    if not tables.has("loader_starts"):
        return None
    starts = tables["loader_starts"].filter(~pl.col("persistent").fill_null(value=True))
    calls = tables["noted_lines"].filter(kind="loader").unique(_PLACE)
    made = calls.row(0, named=True) if calls.height == 1 else {}
    key = ("pass", "rank", "pid", *_PLACE, "workers")
    again = pl.col("start_ms", "first_ms", "stop_ms").slice(1).median()
    found = (
        starts.sort("step", maintain_order=True)
        .group_by(key, maintain_order=True)
        .agg(
            (pl.len() - 1).cast(pl.Int32).alias("starts"),
            (pl.col("step").last() - pl.col("step").first()).alias("steps"),
            again,
            pl.col("loader").n_unique().alias("loaders"),
        )
        .filter(pl.col("starts") > 0, pl.col("steps") > 0)
        .with_columns(
            every=pl.col("steps") / pl.col("starts"),
            start_ms=pl.col("start_ms") + pl.col("stop_ms"),
            made_file=pl.lit(made.get("file"), pl.String),
            made_line=pl.lit(made.get("line"), pl.Int32),
        )
        .with_columns(ms=(pl.col("start_ms") + pl.col("first_ms")) / pl.col("every"))
        .sort("ms", descending=True, maintain_order=True)
    )
    kept = from_rows("loader_restarts", []).columns
    return from_rows("loader_restarts", found.select(kept).to_dicts())


def outside_work(tables: Tables) -> pl.DataFrame | None:
    """Table ``outside_work``; None where no compiled step was profiled."""
    accounts = tables["accounting"].filter(_COMPILED)
    details = tables["account_details"].filter(_COMPILED)
    if accounts.is_empty() or details.is_empty():
        return None
    lines = tables["line_ops"].filter(_COMPILED)
    is_loader = pl.col("name").str.starts_with(marks.DATA_LOADER)
    events = lines.filter(is_loader | (pl.col("kind") == "line"))
    is_optimizer = pl.col("name").str.starts_with(marks.OPTIMIZER_STEP)
    optimizers = tables["cpu_ops"].filter(_COMPILED, _IN_STEP, is_optimizer)
    on_lists = tables["cpu_ops"].filter(_COMPILED, _IN_STEP, pl.col("name").str.contains(_ON_LISTS))
    category, what = pl.col("category"), pl.col("what")
    long = pl.col("ms") >= SHORT_PYTHON_MS * pl.col("count").fill_null(1)
    of_optimizer = what.str.starts_with(marks.OPTIMIZER).fill_null(False)
    is_python = category.is_in(_PYTHON) & long & ~of_optimizer
    is_collective = what.str.starts_with(_COLLECTIVE)
    is_wait, is_copy = category.is_in(_COPIES), (category == "copy") & (what == TO_DEVICE)
    is_read = (category == "copy") & (what == TO_HOST)
    hooks = tables["noted_lines"].filter(kind="hook_step").drop_nulls(_PLACE)
    pageable = tables["kernels"].filter(_COMPILED, pl.col("name").str.contains(_PAGEABLE))
    result: list[Row] = []
    for head in _windows(accounts):
        account, mine = _own(accounts, head), _own(details, head)
        named = account.filter(~pl.col("kind").is_in(UNNAMED).fill_null(False))
        accounted = float(named["ms"].sum())
        # A host that stands at a collective waits for other ranks; no event of the profile says so.
        alone = mine.filter(is_python).join(mine.filter(is_collective), on=_PLACE, how="anti")
        python = [{"kind": "python", "what": None, **row} for row in _by_line(alone, "ms")]
        # Copies to a device where they hold the host (pageable memory): its wait, and the copies.
        held = not mine.filter(is_wait).is_empty()
        copies = _by_line(mine.filter(is_wait | is_copy), "ms") if held else []
        # Copies to the host into pageable memory, which always hold it.
        of_read = is_read if _own(pageable, head).height else pl.lit(False)
        reads = _by_line(mine.filter(of_read), "ms")
        found = [
            *_loading(account, mine, _own(events, head)),
            *python,
            *({"kind": "copies", "what": None, **row} for row in copies),
            *({"kind": "copies", "what": TO_HOST, **row} for row in reads),
            *_operators(
                *(account, mine.filter(~of_read), _own(lines, head)),
                _own(optimizers, head).with_columns(
                    # Its operators: the window's end may lie in the last mark.
                    ms=(pl.col("duration_ns") - pl.col("self_ns").fill_null(0))
                    / (1e6 * (_counts(tables, head).get("steps") or 1))
                ),
                _own(hooks, head),
            ),
        ]
        lists = _lists(_own(on_lists, head), _own(optimizers, head))
        for row in found:
            row |= lists.get(row["what"] or "", {})
            known = accounted and row["ms"] is not None
            row["share"] = row["ms"] / accounted if known else None
        _limit_waiting(tables, head, python, accounted)
        result += [head | row for row in found]
    return from_rows("outside_work", result)


def _loading(account: pl.DataFrame, details: pl.DataFrame, events: pl.DataFrame) -> list[Row]:
    """The lines whose loop asks for a batch, then those that run while it is fetched."""
    total = float(account.filter(pl.col("category").is_in(_LOADING))["ms"].sum())
    if total <= 0:
        return []
    named = details.filter(pl.col("what").str.starts_with(marks.DATA_LOADER))["what"]
    what = named[0].removeprefix(marks.DATA_LOADER) if len(named) else None
    lines = events.filter(pl.col("kind") == "line").sort("start_ns")
    fetches = events.filter(pl.col("name").str.starts_with(marks.DATA_LOADER)).sort("start_ns")
    # The user's line that began last before a mark is the loop's.
    asking = fetches.select("tid", "start_ns", "duration_ns").join_asof(
        lines.select("tid", "start_ns", "file", "line"),
        on="start_ns",
        by="tid",
        check_sortedness=False,
    )
    spans = fetches.select(
        "tid", "start_ns", begun="start_ns", until=pl.col("start_ns") + pl.col("duration_ns")
    )
    inside = lines.join_asof(spans, on="start_ns", by="tid", check_sortedness=False).filter(
        pl.col("start_ns").is_between("begun", "until", closed="none")
    )
    asked = _by_line(asking, "duration_ns")
    whole = sum(row["duration_ns"] for row in asked)
    found = {
        (row["file"], row["line"]): total * row["duration_ns"] / whole for row in asked if whole
    }
    places: dict[tuple[str | None, int | None], float | None] = dict(found or {(None, None): total})
    for row in _by_line(inside, "self_ns"):
        if row["file"] is not None:
            places.setdefault((row["file"], row["line"]), None)
    return [
        {"kind": "loading", "what": what, "file": file, "line": line, "ms": ms}
        for (file, line), ms in places.items()
    ]


def _limit_waiting(tables: Tables, head: Row, python: list[Row], accounted: float) -> None:
    """Give Python at the line that calls compiled code no more than the timed step leaves.

    A thread that waits until its next call looks like Python there, and profiled steps may
    be further apart than timed ones.
    """
    timed = _own(tables["speedups"], head)["compiled_ms"].drop_nulls()
    step = timed[0] if len(timed) else _counts(tables, head).get("step_ms")
    at = {
        (place.file, place.line)
        for region in _own(tables["regions"], head).iter_rows(named=True)
        if (place := first_call(region)) is not None
    }
    if not (python and accounted and step and (python[0]["file"], python[0]["line"]) in at):
        return
    total = sum(row["ms"] for row in python)
    most = max(0.0, 1 - (accounted - total) / step)
    for row in python:
        row["share"] = row["ms"] / total * min(total / accounted, most)


def sparse_coalesces(tables: Tables) -> pl.DataFrame | None:
    """Table ``sparse_coalesces``; None where no compiled step was profiled.

    ``aten::coalesce`` sorts a COO tensor's indices and keeps nothing for the next call: an operator
    that needs them sorted does it again each time. Where the steps make as many sparse tensors as
    they sort, each is another one. On a device the time is that of the kernels that it launches.
    """
    ops = tables["cpu_ops"].filter(_COMPILED, _IN_STEP)
    if ops.is_empty():
        return None
    window = ("pass", "rank")
    steps = ops.group_by(window).agg(all=pl.col("step").n_unique())
    made = ops.filter(name=_MAKE_SPARSE).group_by(window).agg(made=pl.len())
    sorted_ = ops.filter(name=_COALESCE)
    kernels = tables["kernels"].filter(_COMPILED, _IN_STEP, cpu_op=_COALESCE)
    of_device = kernels.group_by(window).agg(device_ns=pl.col("duration_ns").sum())
    lines = tables["line_ops"].filter(_COMPILED, pl.col("file").is_not_null(), name=_COALESCE)
    places = lines.group_by(*window, *_PLACE, maintain_order=True).agg(here=pl.len())
    most = places.sort("here", descending=True, maintain_order=True).unique(window, keep="first")
    found = (
        sorted_.group_by(window, maintain_order=True)
        .agg(count=pl.len(), host_ns=pl.col("duration_ns").sum())
        .join(steps, on=window, nulls_equal=True)
        .join(made, on=window, how="left", nulls_equal=True)
        .join(of_device, on=window, how="left", nulls_equal=True)
        .join(most, on=window, how="left", nulls_equal=True)
        .filter(pl.col("made").fill_null(0) < pl.col("count"), pl.col("count") >= pl.col("all"))
        .with_columns(
            ms=pl.coalesce("device_ns", "host_ns") / 1e6 / pl.col("all"),
            per_step=pl.col("count") / pl.col("all"),
        )
    )
    kept = from_rows("sparse_coalesces", []).columns
    return from_rows("sparse_coalesces", found.select(kept).to_dicts())


def _operators(
    account: pl.DataFrame,
    details: pl.DataFrame,
    lines: pl.DataFrame,
    optimizers: pl.DataFrame,
    hooks: pl.DataFrame,
) -> list[Row]:
    """Operators that no compiled graph holds, with what the device waits for their launches.

    Neither Python nor what waits is one, but Python from one operator of a line to the next is part
    of launching them. ``lines``: events of the window that knows lines; ``optimizers``: marks of
    their steps, ``ms`` of a step; ``hooks``: lines that make a step where autograd calls them.
    """
    busy = account.filter(pl.col("kind") == "busy")["category"].unique().to_list()
    of_no_category = (pl.col("category") == "other") & pl.col("what").str.contains("::")
    eager = details.filter(~pl.col("in_graph").fill_null(False))
    working = eager.filter(
        pl.col("category").is_in(busy) | of_no_category,
        ~pl.col("category").str.starts_with("generated"),
    ).with_columns(waits_ms=0.0, same_ms=pl.when(_SAME).then("ms").otherwise(0.0))
    waiting = eager.filter(pl.col("category") == LAUNCH_BOUND)
    waiting = waiting.with_columns(waits_ms="ms", same_ms=0.0)
    is_python = pl.col("what") == "Python"
    between = waiting.filter(is_python)
    found = pl.concat([working, waiting.filter(~is_python)])
    found = pl.concat([found, between.join(found, on=_PLACE, how="semi")])
    # What lies inside an optimizer's mark is the optimizer's: the mark of its own Python names it.
    of_step = marks.starting(marks.OPTIMIZER_STEP)
    spans = lines.filter(pl.col("name").str.contains(of_step)).select(
        "tid", "start_ns", optimizer="name", until=pl.col("start_ns") + pl.col("duration_ns")
    )
    inside = (
        lines.filter(pl.col("file").is_not_null(), ~pl.col("name").str.contains(of_step))
        .sort("start_ns")
        .join_asof(spans.sort("start_ns"), on="start_ns", by="tid", check_sortedness=False)
        .filter(pl.col("start_ns") < pl.col("until"))
    )
    found = found.join(
        inside.select(*_PLACE, "optimizer").unique(_PLACE, keep="first", maintain_order=True),
        on=_PLACE,
        how="left",
        maintain_order="left",
    ).with_columns(
        optimizer=pl.when(pl.col("what").str.contains(of_step)).then("what").otherwise("optimizer")
    )
    # What no line is known of is the optimizer's whose marks are half of it. Where no line is known
    # at all, or its steps run where none is (in a hook, on autograd's thread), marks name nothing.
    nowhere = pl.lit(True) if spans.is_empty() else pl.col("file").is_null()
    unknown = float(found.filter(nowhere)["ms"].sum())
    if inside.is_empty() and float(optimizers["ms"].sum()) >= unknown / 2:
        owner = pl.lit(optimizers["name"].first(), pl.String)
        found = found.with_columns(optimizer=pl.when(nowhere).then(owner).otherwise("optimizer"))
        if not spans.is_empty() and hooks.height:
            file, line = (pl.lit(hooks[column][0], found[column].dtype) for column in _PLACE)
            found = found.with_columns(
                file=pl.coalesce("file", file), line=pl.coalesce("line", line)
            )
    name = pl.col("optimizer").str.strip_prefix(marks.OPTIMIZER_STEP).str.strip_suffix(".step")
    known = pl.col("file").is_not_null() & pl.col("line").is_not_null()
    counts = optimizers.group_by("step", optimizer="name").agg(calls=pl.len().cast(pl.Float64))
    steps = counts.group_by("optimizer").agg(pl.col("calls").median())
    found = found.join(steps, on="optimizer", how="left", maintain_order="left")
    sums = found.group_by(name.alias("what"), *_PLACE, maintain_order=True).agg(
        pl.col("ms", "waits_ms", "same_ms").sum(), pl.col("calls").first()
    )
    ordered = sums.sort(known, "ms", descending=True, maintain_order=True)
    around = _callers(lines)
    return [
        {"kind": "operators", **row, "callers": around.get(f"{row['file']}:{row['line']}")}
        for row in ordered.to_dicts()
    ]


def _lists(ops: pl.DataFrame, optimizers: pl.DataFrame) -> dict[str, Row]:
    """Optimizer → ``lists`` and ``list_tensors``: into how many lists its tensors are cut.

    A group's tensors of one dtype and device make a list. An operator may be called twice for each,
    or not for all of them: the one that is called least shows how many there are.
    """
    spans = optimizers.sort("start_ns").select(
        *("tid", "start_ns", "name"), mark="op_id", until=pl.col("start_ns") + pl.col("duration_ns")
    )
    inside = (
        ops.sort("start_ns")
        .join_asof(spans, on="start_ns", by="tid", suffix="_mark", check_sortedness=False)
        .filter(pl.col("start_ns") < pl.col("until"))
    )
    # The first argument is the list; torch leaves out the sizes of a long one.
    given = {text: listed(text)[:1] for text in inside["input_dims"].drop_nulls().unique()}
    known = {
        text: len(first[0]) for text, first in given.items() if first and isinstance(first[0], list)
    }
    tensors = pl.col("input_dims").replace_strict(known, default=None, return_dtype=pl.Int64)
    sizes = inside.with_columns(tensors=tensors.replace(0, None))
    found = {}
    for (name,), mine in sizes.group_by("name_mark", maintain_order=True):
        calls = mine.group_by("mark", "name").len().group_by("mark").agg(pl.col("len").min())
        owner = str(name).removeprefix(marks.OPTIMIZER_STEP).removesuffix(".step")
        found[owner] = {
            "lists": calls["len"].median(),
            "list_tensors": mine["tensors"].median(),
        }
    return found


def _callers(events: pl.DataFrame) -> dict[str, list[str]]:
    """Line → the lines around it, innermost first, but for those around a region's call."""
    above = parents(events)
    is_line = events["kind"] == "line"
    lines = nearest(is_line, above)[above].to_list()
    names = events["name"].to_list()

    def around(row: int | None) -> Iterator[str]:
        while row is not None and (row := lines[row]) is not None:
            yield names[row]

    regions = (marks.REGION, *marks.OUR_REGIONS)
    calls = (row for row, name in enumerate(names) if name.startswith(regions))
    held = {name for row in calls for name in around(row)}
    found: dict[str, list[str]] = {}
    for row in is_line.arg_true():
        if names[row] not in found:
            found[names[row]] = [name for name in around(row) if name not in held]
    return found


def operators_ms(tables: Tables, file: str, first_line: int, last_line: int) -> float:
    """Milliseconds of a compiled step in operators of no compiled graph, at these lines."""
    work = first_rank(rows(tables, "outside_work", kind="operators"))
    mine = (row for row in work if row["file"] == file)
    return sum((row["ms"] for row in mine if first_line <= (row["line"] or 0) <= last_line), 0.0)


def step_shares(tables: Tables) -> pl.DataFrame | None:
    """Table ``step_shares``; None where no compiled step was profiled."""
    counted = tables["step_counts"].filter(_COMPILED)
    if counted.is_empty():
        return None
    backward = tables["cpu_ops"].filter(_COMPILED, _IN_STEP, pl.col("name") == marks.BACKWARD)
    blocks = tables["blocks"].filter(
        _COMPILED,
        pl.col("pair_index").is_not_null(),
        pl.col("host_ms") > 0,
        pl.col("thread_ms").is_not_null(),
    )
    result: list[Row] = []
    for head in _windows(counted):
        counts, row = _counts(tables, head), dict(head)
        if counts["step_ms"] and counts["steps"]:
            forward = float(_own(tables["region_costs"], head)["share"].sum())
            ms = float(_own(backward, head)["duration_ns"].sum()) / 1e6 / counts["steps"]
            row["compiled"] = forward + ms / counts["step_ms"]
        mine = _own(blocks, head)
        if mine.height:
            host, used, queued = (
                float(mine[name].sum()) for name in ("host_ms", "thread_ms", "queued_ms")
            )
            row |= {"waiting": max(0.0, host - used - queued) / host, "queued": queued / host}
        result.append(row)
    return from_rows("step_shares", result)


def script_ends(tables: Tables) -> pl.DataFrame | None:
    """Table ``script_ends``; None where no process was recorded."""
    if not tables.has("runs"):
        return None
    key = ("pass", "rank")
    regions = tables["regions"].group_by(key).agg(pl.col("outermost_calls").sum())
    calls = (
        tables["calls"]
        .filter("outermost")
        .group_by(key)
        .agg(calls=pl.len(), last_us=(pl.col("started_us") + pl.col("host_ms") * 1e3).max())
        .join(regions, on=key, how="left", nulls_equal=True)
        .filter(pl.col("calls") == pl.col("outermost_calls"))
    )
    ended = (
        pl.col("error_type").is_null()
        & ~pl.col("exit_kind").is_in(CUT_SHORT).fill_null(False)
        & (pl.col("exit_code").fill_null(0) == 0)
    )
    alone = pl.len().over(key) == 1
    after = pl.col("wall_s") - (pl.col("last_us") - pl.col("started_us")) / 1e6
    return (
        tables["runs"]
        .join(calls, on=key, how="left", nulls_equal=True)
        .select(*key, "pid", by_itself=ended, after_calls_s=pl.when(ended & alone).then(after))
    )


def _windows(frame: pl.DataFrame) -> list[Row]:
    return frame.select("pass", "rank").unique(maintain_order=True).to_dicts()


def _own(frame: pl.DataFrame, head: Row) -> pl.DataFrame:
    return having(frame, **{"pass": head["pass"]}, rank=head["rank"])


def _counts(tables: Tables, head: Row) -> Row:
    found = _own(tables["step_counts"].filter(_COMPILED), head)
    return found.row(0, named=True) if found.height else {}


def _by_line(found: pl.DataFrame, column: str) -> list[Row]:
    """The sum of ``column`` by line, the largest first; what has no line comes last."""
    sums = found.group_by("file", "line", maintain_order=True).agg(pl.col(column).sum())
    order = sums.with_columns(known=pl.col("file").is_not_null() & pl.col("line").is_not_null())
    return (
        order.sort("known", column, descending=True, maintain_order=True).drop("known").to_dicts()
    )
