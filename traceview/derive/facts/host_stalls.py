"""Table ``host_stalls``: what holds the host in compiled steps, apart from launching.

Garbage collections, memory that is taken from the driver or given back to it, and the own code of
operators that are not torch's: what lies between an operator's start and the operators and calls
inside it. On a GPU, only as far as the device waits for it.
"""

from __future__ import annotations

import polars as pl

from traceview.derive import causes
from traceview.parse.kineto.categories import USER_KERNEL, is_foreign
from traceview.tables import Tables, from_rows
from traceview.torchtext import marks

_COMPILED = pl.col("stance") == "compiled"
_IN_STEP = pl.col("step").is_not_null()
_WINDOW = ("pass", "rank")
#: Category of table ``accounting`` → ``kind``.
_KINDS = {
    causes.GC: "collection",
    causes.HOST_GC: "collection",
    causes.ALLOCATOR: "memory",
    causes.CUSTOM_OP: "custom_op",
    USER_KERNEL: "custom_op",
}
_COLLECTION = "garbage collection"
#: The oldest generation: all objects are looked at.
_FULL = f"{marks.OUR_GC}2"


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
