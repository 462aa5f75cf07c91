"""Table ``read_places``: where a script reads values from the GPU in every step, and the cost."""

from __future__ import annotations

import polars as pl

from traceview.tables import Tables

_WINDOW = ("pass", "rank", "stance")
#: Reads in fewer steps than these are what there should be.
LEAST_READS = 0.5


def read_places(tables: Tables) -> pl.DataFrame | None:
    """Lines of ``host_reads`` joined with their place in ``read_replays``, most expensive first.

    Lines where a graph breaks are left out: what they cost is in the cost of the break. The
    replay's times are put in proportion to the step as timed. None where no step was replayed.
    """
    if not all(map(tables.has, ("host_reads", "read_replays", "graph_breaks"))):
        return None
    broken = tables["graph_breaks"].select("pass", file="user_file", line="user_line").unique()
    reads = (
        tables["host_reads"]
        .filter(pl.col("scalars") + pl.col("tensors") >= LEAST_READS, pl.col("asks") != "")
        .join(broken, on=["pass", "file", "line"], how="anti")
        .rename({"line": "read_line"})
    )
    timed = tables["speedups"].select("pass", "rank", timed_ms="compiled_ms")
    replays = (
        tables["read_replays"]
        .filter(pl.col("step_ms") > 0)
        .join(timed, on=["pass", "rank"], how="left", nulls_equal=True)
        .with_columns(timed_ms=pl.coalesce("timed_ms", "step_ms"))
    )
    joined = replays.join(reads, on=[*_WINDOW, "file"], nulls_equal=True).filter(
        pl.col("read_line").is_between("line", "last_line")
    )
    places = joined.group_by(*_WINDOW, "file", "line", "last_line", maintain_order=True).agg(
        pl.col("read_line").sort().cast(pl.Int64).alias("lines"),
        pl.col("asks").sort_by("read_line").first(),
        pl.col("scalars", "tensors", "waited_ms").sum(),
        pl.col("timed_ms", "step_ms", "without_ms").first(),
    )
    without = pl.col("without_ms") * pl.col("timed_ms") / pl.col("step_ms")
    return (
        places.drop("line", "last_line")
        .with_columns(saved_ms=pl.col("timed_ms") - without, without_ms=without)
        .drop("timed_ms", "step_ms")
        .sort("saved_ms", descending=True, maintain_order=True)
    )
