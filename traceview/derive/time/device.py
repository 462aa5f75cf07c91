"""What a device did in a window: blocks of work, and what each of them had to wait for.

A block is a stretch in which the device is busy without a pause, on however many streams. It begins
at ``max(before + ramp, launch + latency)``, ``before`` being the end of the block before it:

- the launch of its first kernel began after ``before``, or so shortly earlier that the launch's own
  latency decides: the host was late;
- the launch was made in time: the ramp is the device's own doing (a dependency, a stream that
  waits, the way from one kernel to the next);
- the kernel is of the same cudagraph replay as the one before, or its launch was not recorded: the
  block comes a ramp after ``before``, whenever that is.
"""

from __future__ import annotations

import polars as pl

from traceview.derive import causes
from traceview.derive.intervals import Interval
from traceview.derive.windows import Window

#: From a launch call's start to the kernel's at an empty queue: at most this, where a window shows
#: only kernels that waited in a queue (7 to 9 µs on an H200 under the profiler).
LATENCY_NS = 10_000
#: Time between two kernels that wait in a queue, where a window shows none: half of an H200's.
RAMP_NS = 800


def device_span(window: Window) -> Interval:
    """From the first step's begin, or the end of earlier work, to the end of host or device."""
    low, high = window.host_span
    kernels = window.main_kernels
    starts = kernels["start_ns"].to_list()
    ends = (kernels["start_ns"] + kernels["duration_ns"]).to_list()
    earlier = low if window.begun_ns is None else min([window.begun_ns, *starts])
    return max(low, earlier), max([high, *ends])


def blocks_of(kernels: pl.DataFrame, begun: int) -> pl.DataFrame:
    """Blocks of ``kernels`` in order; the first follows ``begun``. All times in ns.

    Columns ``start``, ``end``, ``before``, ``launch`` (null: none needed), ``latency``, ``ramp``,
    ``cause`` of the ramp, and ``staged``: a copy from or to pageable memory, which the host makes.
    """
    found = _stretches(kernels).with_columns(before=pl.col("end").shift(1).fill_null(begun))
    found = found.with_columns(
        gap=(pl.col("start") - pl.col("before")).clip(lower_bound=0),
        lag=pl.col("start") - pl.col("launch"),
        tied=pl.col("launch").is_null() | (pl.col("start") < pl.col("launch")) | pl.col("replay"),
    )
    latency, ramp = _usual(found.filter(~pl.col("tied")))
    arrived = pl.col("launch") + latency
    late = ~pl.col("tied") & (arrived >= pl.col("before") + pl.min_horizontal("gap", ramp))
    cause = (
        pl.when("replay").then(pl.lit(causes.IN_GRAPH))
        .when("tied").then(pl.lit(causes.UNLINKED)).otherwise(pl.lit(causes.DEVICE))
    )  # fmt: skip
    return found.select(
        "start", "end", "before", "staged", launch=pl.when(~pl.col("tied")).then("launch"),
        latency=pl.when(late).then("lag").otherwise(pl.min_horizontal("lag", latency)).fill_null(0),
        ramp=pl.when(late).then(pl.min_horizontal("gap", ramp)).otherwise("gap"), cause=cause,
    )  # fmt: skip


def _usual(launched: pl.DataFrame) -> tuple[int, int]:
    """Latency of a launch into an empty queue, and ramp between queued kernels, in this window."""
    late = launched.filter(pl.col("launch") >= pl.col("before"))["lag"].sort().to_list()
    lags = late[: max(1, len(late) // 10)] or sorted(launched["lag"].to_list())[:1]
    latency = min(lags[-1], LATENCY_NS) if lags else LATENCY_NS
    queued = launched.filter(pl.col("launch") + 3 * latency < pl.col("before"))
    gaps = queued["gap"].sort().to_list()
    return latency, gaps[len(gaps) // 2] if gaps else RAMP_NS


def _stretches(kernels: pl.DataFrame) -> pl.DataFrame:
    """``start``, ``end``, ``launch`` of the first kernel, and whether it goes on with a replay."""
    ordered = kernels.filter(pl.col("duration_ns") > 0).sort("start_ns").select(
        start="start_ns", end=pl.col("start_ns") + pl.col("duration_ns"), launch="launch_start_ns",
        staged=pl.col("name").str.contains("Pageable"),
        replay=(pl.col("correlation") == pl.col("correlation").shift(1)).fill_null(False),
    )  # fmt: skip
    new = pl.col("start") > pl.col("end").cum_max().shift(1)
    numbered = ordered.with_columns(number=new.fill_null(True).cum_sum())
    return numbered.group_by("number", maintain_order=True).agg(
        pl.col("start").first(), pl.col("end").max(), pl.col("launch", "replay", "staged").first()
    )
