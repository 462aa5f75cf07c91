"""Where a step's time goes on the host: operators, torch.compile's own work, the rest."""

from __future__ import annotations

from itertools import pairwise

import polars as pl

from traceview.derive.intervals import Interval, clip, length, merge
from traceview.derive.time.device import Share
from traceview.derive.windows import Window

LOOKUP = "TorchDynamo Cache Lookup"
REGION = "Torch-Compiled Region: "
GRAPH = "## Call CompiledFxGraph "
OUR_REGION = "traceview region "
PREGRAPH = "Pregraph bytecode"
PROLOGUE = "AOTDispatcher Runtime Wrapper Prologue"
_FUNCTIONS = ("CompiledFunction", "CompiledFunctionBackward")
#: Host time that belongs neither to an operator nor to a mark of torch.compile's.
PYTHON = "python"


def overhead_category(name: str) -> str:
    """Which part of a compiled call's cost a mark of torch.compile's stands for."""
    if name == LOOKUP:
        return "overhead_cache_lookup"
    if name == PREGRAPH:
        return "overhead_pregraph_bytecode"
    if name.startswith(GRAPH):
        return "overhead_generated_wrapper"
    if name.startswith(REGION):
        return "overhead_compiled_region"
    return "overhead_runtime_wrappers"


def host_shares(window: Window, *, graphs_hold_kernels: bool = False) -> list[Share]:
    """Time of the steps' own thread by category; the sum is the window's span.

    Every operator counts with its self time. ``graphs_hold_kernels``: the generated kernels were
    not recorded one by one (``enable_kernel_profile`` was off), so that their time is the generated
    wrapper's self time.
    """
    ops = _clipped(window)
    wrapper = pl.col("name").str.starts_with(GRAPH)
    names = ops.filter(pl.col("category") == "overhead")["name"].unique().to_list()
    parts = {name: overhead_category(name) for name in names}
    label = pl.col("name").replace_strict(parts, default=None, return_dtype=pl.String)
    if graphs_hold_kernels:
        label = pl.when(wrapper).then(pl.lit("generated_other")).otherwise(label)
    label = pl.coalesce(label, pl.col("category").replace("mark", PYTHON))
    found = ops.with_columns(label=label).group_by("label", maintain_order=True).agg(
        pl.col("self_ns").sum(), pl.len()
    )  # fmt: skip
    shares = [Share(name, _kind(name), ns, n, "host") for name, ns, n in found.iter_rows()]
    return _with_remainder(shares, window)


def _with_remainder(shares: list[Share], window: Window) -> list[Share]:
    """``shares`` with what no event covers added to the time in Python."""
    covered = sum(share.ns for share in shares)
    rest = max(0.0, window.span[1] - window.span[0] - covered)
    marked = sum(share.ns for share in shares if share.category == PYTHON)
    kept = [share for share in shares if share.category != PYTHON]
    return [*kept, Share(PYTHON, "other", rest + marked, 0, "host")]


def _clipped(window: Window) -> pl.DataFrame:
    """Events of the steps' thread inside the span with their self time in it; no marks of steps."""
    low, high = window.span
    start, end = pl.col("start_ns"), pl.col("start_ns") + pl.col("duration_ns")
    inside = window.ops.filter(
        (pl.col("tid") == window.main_tid) & (start < high) & (end > low)
        & ~pl.col("name").str.contains(r"^(?:traceview step |ProfilerStep#)")
    ).with_columns((end.clip(low, high) - start.clip(low, high)).alias("in_ns"))  # fmt: skip
    below = inside.group_by("parent_id").agg(pl.col("in_ns").sum().alias("below_ns"))
    joined = inside.join(
        below, left_on="op_id", right_on="parent_id", how="left", maintain_order="left"
    )
    own = pl.col("in_ns") - pl.col("below_ns").fill_null(0)
    return joined.with_columns(own.clip(lower_bound=0).alias("self_ns"))


def _kind(category: str) -> str:
    if category.startswith("overhead"):
        return "overhead"
    return "other" if category in ("other", PYTHON) else "busy"


def call_overhead_ns(window: Window) -> int:
    """Look-up, pre-graph bytecode, prologue and the compiled function's own work, host."""
    steps = _in_steps(window)
    whole = steps.filter(pl.col("name").is_in([LOOKUP, PREGRAPH, PROLOGUE]))["duration_ns"].sum()
    return int(whole) + int(steps.filter(pl.col("name").is_in(_FUNCTIONS))["self_ns"].sum())


def lookup_ns(window: Window) -> int:
    """``TorchDynamo Cache Lookup``: evaluating guards, host."""
    return int(_in_steps(window).filter(pl.col("name") == LOOKUP)["duration_ns"].sum())


def compiled_regions(window: Window) -> int:
    """``Torch-Compiled Region`` marks inside the steps."""
    return _in_steps(window).filter(pl.col("name").str.starts_with(REGION)).height


def gaps(window: Window) -> list[int] | None:
    """Host ns between compiled parts of one region call; None if no call is marked.

    A gap goes from the end of what a compiled graph's call does to the next look-up in the same
    call: what runs there is the code of a graph break. (The region after a break may lie inside
    the one before it, so the regions' own marks do not tell.)
    """
    steps = _in_steps(window)
    calls = steps.filter(pl.col("name").str.starts_with(OUR_REGION))
    if calls.is_empty():
        return None
    inner = pl.col("name").is_in([LOOKUP, PREGRAPH, PROLOGUE, _FUNCTIONS[0]])
    marks = steps.filter(
        (inner | pl.col("name").str.starts_with(GRAPH)) & pl.col("region").is_not_null()
    )
    found: list[int] = []
    for tid, start, duration in calls.select("tid", "start_ns", "duration_ns").iter_rows():
        call = (start, start + duration)
        mine = marks.filter((pl.col("tid") == tid) & pl.col("start_ns").is_between(*call))
        found += _between(mine, call)
    return found


def _between(marks: pl.DataFrame, call: Interval) -> list[int]:
    ends = marks["start_ns"] + marks["duration_ns"]
    lookups = {s for n, s in marks.select("name", "start_ns").iter_rows() if n == LOOKUP}
    covered = merge(clip(zip(marks["start_ns"], ends, strict=True), call))
    graphs = merge(
        (s, s + d)
        for n, s, d in marks.select("name", "start_ns", "duration_ns").iter_rows()
        if n == _FUNCTIONS[0] or n.startswith(GRAPH)
    )
    after_graph = {end for _, end in graphs}
    return [
        after[0] - before[1]
        for before, after in pairwise(covered)
        if after[0] in lookups and before[1] in after_graph
    ]


def working_operators(window: Window) -> pl.DataFrame:
    """Operators inside the steps that do work on a CPU, on any thread."""
    idle = ("mark", "other", "overhead")
    return _in_steps(window).filter(~pl.col("category").is_in(idle))


def _in_steps(window: Window) -> pl.DataFrame:
    return window.ops.filter(pl.col("step").is_not_null()) if window.steps else window.ops


def covered_ns(frame: pl.DataFrame) -> int:
    """Host time that the rows of ``frame`` cover, nested ones counted once."""
    total = 0
    for _, mine in frame.group_by("tid"):
        ends = mine["start_ns"] + mine["duration_ns"]
        total += length(zip(mine["start_ns"], ends, strict=True))
    return total
