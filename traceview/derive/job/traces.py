"""Profiler traces of a job on the clock of its logs: their steps, and when the device was busy."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import polars as pl

from traceview.derive.intervals import Interval
from traceview.derive.job.spans import Attempt
from traceview.tables import Tables
from traceview.torchtext.marks import PROFILER_STEP

#: On a CPU: marks, and spans that hold work and do none (the compiler's own are among them).
_NO_WORK = ("overhead", "mark", "other")
_COMMUNICATION = "communication"


class Trace(msgspec.Struct, frozen=True):
    """One trace; times are Unix time, ns. ``busy``: start, end, and busy time before, in order."""

    member: str
    name: str
    window: Interval
    steps: list[tuple[int, int, int]]
    busy: pl.DataFrame
    on_device: bool

    def idle_ns(self, span: Interval) -> int:
        """Time of ``span`` inside the window in which nothing ran."""
        start, end = max(span[0], self.window[0]), min(span[1], self.window[1])
        return end - start - self._until(end) + self._until(start) if start < end else 0

    def _until(self, moment: int) -> int:
        """Busy time up to ``moment``."""
        at = int(self.busy["start"].search_sorted(moment, side="right")) - 1
        if at < 0:
            return 0
        start, end, before = self.busy.row(at)
        return int(before + min(moment, end) - start)


def traces(tables: Tables, job: Attempt) -> Iterator[Trace]:
    """Traces whose rank and Unix time are known, one a rank and stance: rows name no trace."""
    mine = tables["traces"].filter(pl.col("pass") == job.name).drop_nulls(["rank", "zero_ns"])
    alone = mine.filter(pl.len().over("rank", "stance") == 1)
    for row in alone.drop_nulls("span_ns").iter_rows(named=True):
        of = {"pass": job.name, "rank": row["rank"], "stance": row["stance"]}
        ops, kernels = (_rows(tables, name, of) for name in ("cpu_ops", "kernels"))
        work = (
            kernels.filter(pl.col("category") != _COMMUNICATION) if kernels.height
            else ops.filter(~pl.col("category").is_in(_NO_WORK))
        )  # fmt: skip
        zero = row["zero_ns"]
        yield Trace(
            member=str(row["rank"]),
            name=row["name"],
            window=(zero, zero + row["span_ns"]),
            steps=_steps(ops, zero),
            busy=_merged(work, zero),
            on_device=bool(kernels.height),
        )


def _rows(tables: Tables, name: str, of: dict[str, object]) -> pl.DataFrame:
    found = tables[name].filter(*(pl.col(column) == value for column, value in of.items()))
    return found.select("name", "category", "start_ns", "duration_ns").drop_nulls("start_ns")


def _steps(ops: pl.DataFrame, zero: int) -> list[tuple[int, int, int]]:
    """(begins, ends, number) of the steps that the profiler marked."""
    marks = ops.with_columns(
        pl.col("name").str.extract(PROFILER_STEP, 1).cast(pl.Int64).alias("step")
    )
    known = marks.drop_nulls("step").sort("start_ns")
    spans = known.select(
        pl.col("start_ns") + zero,
        (pl.col("start_ns") + pl.col("duration_ns") + zero).alias("end_ns"),
        "step",
    )
    return [(start, end, step) for start, end, step in spans.iter_rows()]


def _merged(work: pl.DataFrame, zero: int) -> pl.DataFrame:
    """The union of all work as disjoint intervals in order, with the busy time before each."""
    spans = work.select(
        start=pl.col("start_ns") + zero,
        end=pl.col("start_ns") + pl.col("duration_ns").fill_null(0) + zero,
    ).sort("start")
    group = (pl.col("start") > pl.col("end").cum_max().shift(1)).fill_null(True).cum_sum()
    merged = spans.group_by(group.alias("group"), maintain_order=True).agg(
        pl.col("start").first(), pl.col("end").max()
    )
    long = pl.col("end") - pl.col("start")
    return merged.select("start", "end", before=long.cum_sum() - long)
