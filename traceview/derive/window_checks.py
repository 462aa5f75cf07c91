"""What in a profiler window cannot be as it is written, or is no part of a steady step.

Every function gives back what is left, and says in ``Notes`` what it changed.
"""

from __future__ import annotations

import polars as pl

#: (what is concerned, what was done and why)
Notes = list[tuple[str, str]]
#: Kernels may precede their launches by damage; the clocks differ if more than this part do.
_SKEWED_PART = 0.01
_MUCH_LONGER_NS = 1_000_000_000
#: One of so many steps is left out at the beginning.
_SETTLING_PART = 5
#: A step of as many events that takes this many medians was held up, unless more than this part is.
_HELD_UP = 2.0
_HELD_UP_PART = 0.25
_END = pl.col("start_ns") + pl.col("duration_ns")


def plausible(kernels: pl.DataFrame, host: list[pl.DataFrame], notes: Notes) -> pl.DataFrame:
    """``kernels`` less those that outlast all that the host recorded by more than a second."""
    spans = pl.concat([frame.select("start_ns", end=_END) for frame in host])
    if spans.is_empty():
        return kernels
    recorded = int(spans["end"].max() - spans["start_ns"].min())  # type: ignore[operator, arg-type]
    longest = recorded + _MUCH_LONGER_NS
    kept = kernels.filter(pl.col("duration_ns").is_between(0, longest))
    if kept.height < kernels.height:
        count = kernels.height - kept.height
        notes.append(
            (f"{count} of {kernels.height} kernels", "left out: longer than the whole window")
        )
    return kept


def in_step_with_host(kernels: pl.DataFrame, notes: Notes) -> pl.DataFrame:
    """``kernels`` on the host's clock: moved, if they start before their launches."""
    early = (kernels["launch_start_ns"] - kernels["start_ns"]).drop_nulls()
    if not early.len() or (early > 0).sum() <= _SKEWED_PART * early.len():
        return kernels
    skew = int(early.quantile(1 - _SKEWED_PART, "nearest") or 0)
    why = f"moved by {skew / 1000:.1f} µs: kernels start before their launches"
    notes.append(("times of the device", why))
    return kernels.with_columns(pl.col("start_ns") + skew)


def of_one_device(kernels: pl.DataFrame, notes: Notes) -> pl.DataFrame:
    """``kernels`` of the device that was busy longest, which the step is accounted on."""
    if kernels["device"].n_unique() < 2:
        return kernels
    busy = kernels.group_by("device").agg(pl.col("duration_ns").sum()).sort("duration_ns")
    main = busy["device"][-1]
    others = ", ".join(str(device) for device in sorted(busy["device"][:-1].drop_nulls()))
    notes.append((f"time of device {others}", f"not accounted: device {main} was busy longest"))
    return kernels.filter(pl.col("device") == main)


def without_settling(marks: pl.DataFrame) -> pl.DataFrame:
    """``marks`` less those of the first steps, in which the profiler settles."""
    steps = marks["step"].unique().sort()
    settling = steps.len() // _SETTLING_PART or int(steps.len() > 1)
    return marks.filter(pl.col("step").is_in(steps[settling:].implode()))


def without_held_up(marks: pl.DataFrame, ops: pl.DataFrame, notes: Notes) -> pl.DataFrame:
    """``marks`` less those of steps that took far longer than others with as many events."""
    events = ops.group_by("step").agg(pl.len().alias("events"))
    judged = marks.join(events, on="step", how="left", maintain_order="left")
    usual = (pl.col("duration_ns") / pl.col("duration_ns").median()).over("events")
    held_up = judged.select(usual > _HELD_UP).to_series()
    count = int(held_up.sum())
    if not count or count > _HELD_UP_PART * marks.height:
        return marks
    why = "left out: twice as long as others with the same events"
    notes.append((f"{count} of {marks.height} profiled steps", why))
    return marks.filter(~held_up)
