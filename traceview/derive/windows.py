"""One profiler window: its span on the shared clock of host and device, its steps, its rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from traceview.derive.intervals import Interval
from traceview.tables import Tables

_STEP_MARK = r"^(?:traceview step |ProfilerStep#)\d+$"
_KEY = ("pass", "rank", "stance")


@dataclass(frozen=True, slots=True)
class Window:
    """The rows of one pass, rank and stance; ``span`` in ns, ``steps`` None where none is marked.

    With marked steps the span goes from the first mark's start to the last one's end or, where a
    device lags behind the host, to the end of the work that these steps launched.
    """

    pass_name: str
    rank: int | None
    stance: str
    span: Interval
    steps: int | None
    main_tid: str | None
    kernels: pl.DataFrame
    launches: pl.DataFrame
    ops: pl.DataFrame
    on_device: bool

    @property
    def head(self) -> dict[str, str | int | None]:
        return {"pass": self.pass_name, "rank": self.rank, "stance": self.stance}

    def per_step(self, value: float) -> float | None:
        """``value`` of the window per step; None where no steps are known."""
        return value / self.steps if self.steps else None

    def ms_per_step(self, ns: float) -> float | None:
        """Nanoseconds of the window as milliseconds per step."""
        return self.per_step(ns / 1e6)


def windows(tables: Tables) -> Iterator[Window]:
    """The profiler windows of a run that hold an event, in the order of the tables."""
    keys = pl.concat([tables[name].select(_KEY) for name in ("cpu_ops", "kernels")])
    for pass_name, rank, stance in keys.unique(maintain_order=True).iter_rows():
        mine = (
            pl.col("pass").eq(pass_name)
            & pl.col("rank").eq_missing(pl.lit(rank, dtype=pl.Int32))
            & pl.col("stance").eq(stance)
        )
        names = ("kernels", "kernel_launches", "cpu_ops")
        yield _window((pass_name, rank, stance), [tables[name].filter(mine) for name in names])


def _window(key: tuple[str, int | None, str], frames: list[pl.DataFrame]) -> Window:
    kernels, launches, ops = frames
    on_device = kernels.height > 0
    marks = ops.filter(pl.col("name").str.contains(_STEP_MARK) & pl.col("step").is_not_null())
    if marks.height:
        steps = marks["step"].n_unique()
        kernels, launches = (f.filter(pl.col("step").is_not_null()) for f in (kernels, launches))
        span = _span([marks, kernels], from_first=True)
        tid = marks["tid"][0]
    else:
        steps, span = None, _span([ops, kernels])
        busiest = ops.group_by("tid").agg(pl.col("self_ns").sum()).sort("self_ns", descending=True)
        tid = busiest["tid"][0] if busiest.height else None
    return Window(*key, span, steps, tid, kernels, launches, ops, on_device)


def _span(frames: list[pl.DataFrame], *, from_first: bool = False) -> Interval:
    """From the first start (of the first frame alone, if so asked) to the last end."""
    starts = pl.concat([f["start_ns"] for f in (frames[:1] if from_first else frames)]).to_list()
    ends = pl.concat([f["start_ns"] + f["duration_ns"] for f in frames]).to_list()
    return min(starts), max(ends)
