"""Table ``busy_threads``: the script's other Python threads, and who waits for Python's lock."""

from __future__ import annotations

import polars as pl

from traceview.derive.facts.rows import measured
from traceview.tables import Tables, from_rows

_KEY = ("pass", "rank", "name", "native_id")
_LINE = ("file", "line", "function")


def busy_threads(tables: Tables) -> pl.DataFrame | None:
    """Table ``busy_threads``; None where no look was recorded."""
    if not tables.has("thread_looks"):
        return None
    looks = (
        tables["thread_looks"].drop_nulls("name").sort("pass", "rank", "look", maintain_order=True)
    )
    threads = looks.group_by(_KEY, maintain_order=True).agg(
        ran_ms=pl.when(pl.col("ran_ms").count() > 0).then(pl.col("ran_ms").sum()),
        ran_looks=(pl.col("ran_ms") > 0).sum(),
        lock_wait_ms=pl.col("waited_ms").median(),
        interval_ms=pl.col("interval_ms").median(),
        looks=pl.len(),
    )
    # The function where it was seen most often, at the line seen most often there.
    users = looks.filter(pl.col("file").is_not_null())
    of_function = [*_KEY, "file", "function"]
    lines = (
        users.with_columns(seen=pl.len().over(of_function), here=pl.len().over([*_KEY, *_LINE]))
        .sort("seen", "here", descending=True, maintain_order=True)
        .unique(_KEY, keep="first", maintain_order=True)
    )
    timed = measured(tables)
    step = timed["compiled_ms"] if timed else None
    shares = tables["step_shares"].select(
        "pass", "rank", step_waits_ms=pl.col("waiting") * pl.lit(step, dtype=pl.Float64)
    )
    found = threads.join(
        lines.select(*_KEY, *_LINE, "seen"), on=_KEY, how="left", nulls_equal=True
    ).join(shares, on=["pass", "rank"], how="left", nulls_equal=True)
    ordered = found.sort("ran_ms", descending=True, nulls_last=True, maintain_order=True)
    return from_rows("busy_threads", ordered.drop("native_id").to_dicts())
