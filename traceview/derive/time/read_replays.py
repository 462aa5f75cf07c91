"""Table ``read_replays``: a step played again without the values that a place reads from the GPU.

A host that reads waits, launches nothing meanwhile, and finds the GPU without work when it goes on.
What a step takes without that is no sum of idle times: a host that is not held comes to all that
follows earlier, up to where the GPU is the slower of the two. So the window is played again
(``unprofiled``) without the reads. Where a place reads several values in each step, all goes that
its lines do outside of compiled graphs, as it would if they ran every fiftieth step; where it reads
one, the wait alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import polars as pl

from traceview.derive.time import unprofiled
from traceview.derive.time.accounting import Account, Played
from traceview.derive.time.lines import python_lines
from traceview.derive.windows import Window
from traceview.tables import Tables

Row = dict[str, Any]
#: This many values of a step come singly, in a loop or line by line.
SEVERAL = 2
#: Lines of one loop's body that are no further apart are one place.
NEAR_LINES = 10


class Place(NamedTuple):
    """Lines near each other that read equally many values, several a step; or one line."""

    file: str
    lines: list[int]
    scalars: float


def places(reads: Iterable[Row]) -> list[Place]:
    """The places of ``reads``: ``file``, ``line`` and ``scalars`` of each line."""
    found: list[Place] = []
    for row in sorted(reads, key=lambda row: (row["file"], row["line"])):
        last = found[-1] if found and row["scalars"] >= SEVERAL else None
        same = last and (last.file, last.scalars) == (row["file"], row["scalars"])
        if last and same and row["line"] - last.lines[-1] <= NEAR_LINES:
            last.lines.append(row["line"])
        else:
            found.append(Place(row["file"], [row["line"]], row["scalars"]))
    return found


def read_replays(
    tables: Tables, window: Window, account: Account, reads: Iterable[Row]
) -> Iterator[Row]:
    """Rows of one window, a place each; none where it can't be played."""
    played = account.played
    if played is None or played.period_ns <= 0 or not window.steps:
        return
    sources = window.own(tables["op_sources"])
    python = python_lines(account.line, sources, window.own(tables["line_ops"]))
    for place in places(reads):
        # The stretches of the host's line that end with the reads.
        at = pl.col("file").eq(place.file) & pl.col("line").is_in(place.lines)
        here = pl.col("op").is_in(sources.filter(at)["op_id"].implode())
        gone = here & pl.col("graph_key").is_null()
        if place.scalars < SEVERAL:
            gone = (gone & pl.col("waits")).fill_null(False)
        else:
            of_python = pl.col("row").is_in(python.filter(at)["row"].implode())
            gone = gone.fill_null(False) | of_python
        left = _without(window, played, account.line.with_columns(gone=gone))
        period = played.player.play(played.event_ns, played.graph_gaps, left).period
        yield {
            **window.head,
            "file": place.file,
            "line": place.lines[0],
            "last_line": place.lines[-1],
            "step_ms": window.ms_per_step(played.period_ns),
            "without_ms": window.ms_per_step(min(period, played.period_ns)),
        }


def _without(window: Window, played: Played, line: pl.DataFrame) -> unprofiled.Without:
    """What is left of the window when the stretches of ``line`` that are ``gone`` go."""
    gone = line.filter("gone")
    spent = gone.group_by("run").agg(
        ns=(pl.col("end") - pl.col("start")).sum(), fewer=pl.col("edges").sum()
    )
    runs = unprofiled.runs_of(line).join(spent, on="run", how="left", maintain_order="left")
    left = runs.with_columns(
        end=pl.col("end") - pl.col("ns").fill_null(0),
        edges=pl.col("edges") - pl.col("fewer").fill_null(0),
    )
    waits = runs.filter("waits")["ns"].to_list()
    # Every block keeps its work, but for the kernels of what is gone.
    ops, starts = gone.select("op").unique(), played.player.blocks["start"]
    kernels = window.main_kernels.join(ops, left_on="cpu_op_id", right_on="op", how="semi")
    block = starts.search_sorted(kernels["start_ns"], side="right").cast(pl.Int64) - 1
    less = kernels.select(ns="duration_ns", block=block).filter(pl.col("block") >= 0)
    busy = list(played.player.busy)
    for number, ns in less.group_by("block").agg(pl.col("ns").sum()).iter_rows():
        busy[number] = max(0, busy[number] - ns)
    return unprofiled.Without(
        unprofiled.moving(left, played.event_ns),
        frozenset(number for number, ns in enumerate(waits) if ns is not None),
        busy,
    )
