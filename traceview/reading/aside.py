"""Profiler traces of one rank and stance, of which one is looked at.

Rows name no trace: their times count from its beginning, and their numbers begin anew. Two traces
of one rank in one table would be taken for one window in which everything happens at once. So
derive and rules get the trace that holds most; on disk all stay, a file each.
"""

from __future__ import annotations

from pathlib import PurePath

import polars as pl

from traceview.tables import from_rows

MOST_NAMES = 5
_WINDOW = ("pass", "rank", "stance")


def chosen_traces(traces: pl.DataFrame) -> pl.DataFrame:
    """Of the traces of one rank and stance, the one with most events."""
    ordered = traces.sort("events", descending=True, nulls_last=True, maintain_order=True)
    return ordered.unique(_WINDOW, keep="first", maintain_order=True)


def parts_aside(traces: pl.DataFrame, inputs: pl.DataFrame) -> frozenset[str]:
    """The parts of all others."""
    names = traces.join(chosen_traces(traces), on=["pass", "name"], how="anti")["name"]
    return frozenset(inputs.filter(pl.col("name").is_in(names.implode()))["part"].drop_nulls())


def notes_of(traces: pl.DataFrame) -> pl.DataFrame:
    """Rows of table ``notes`` that name what is not looked at."""
    left = traces.join(chosen_traces(traces), on=["pass", "name"], how="anti")
    groups = left.group_by(_WINDOW, maintain_order=True).agg("name")
    rows = (
        {
            "pass": pass_name,
            "rank": rank,
            "what": f"profiler traces not looked at, of {stance} steps: {_shown(names)}",
            "why": f"of several of {_of(rank)}, the one with most events is",
        }
        for pass_name, rank, stance, names in groups.iter_rows()
    )
    return from_rows("notes", rows)


def _of(rank: int | None) -> str:
    return "processes whose rank is not known" if rank is None else f"rank {rank}"


def _shown(names: list[str]) -> str:
    shown = [PurePath(name).name for name in names[:MOST_NAMES]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
