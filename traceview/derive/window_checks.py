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
_UNLINKED_PART = 0.1
#: A step of a cut trace is whole that has this part of the events of the fullest one.
_WHOLE = 0.9
#: Calls that return when all that was launched before is done, and how early a clock may say so.
_WAITS_FOR_ALL = ("cudaDeviceSynchronize", "cuCtxSynchronize")
_AHEAD_NS = 20_000
_LATENCY_NS = 10_000


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


def in_step_with_host(kernels: pl.DataFrame, launches: pl.DataFrame, notes: Notes) -> pl.DataFrame:
    """``kernels`` on the host's clock: moved, if the two clocks cannot be one."""
    skew, why = _behind_ns(kernels), "kernels start before their launches"
    if not skew:
        skew, why = -_ahead_ns(kernels, launches), "kernels end after calls that waited for them"
    if not skew:
        return kernels
    notes.append(("times of the device", f"moved by {skew / 1000:.1f} µs: {why}"))
    return kernels.with_columns(pl.col("start_ns") + skew)


def note_unlinked(kernels: pl.DataFrame, notes: Notes) -> None:
    """Says so where many kernels have no launch: nothing tells what the device waited for."""
    lost = kernels["launch_start_ns"].null_count()
    if lost > _UNLINKED_PART * kernels.height:
        what = f"the launches of {lost} of {kernels.height} kernels"
        notes.append((what, "not recorded: why the device idled before them is not known"))


def _behind_ns(kernels: pl.DataFrame) -> int:
    """How far the device's clock is behind the host's, by kernels that start too early."""
    early = (kernels["launch_start_ns"] - kernels["start_ns"]).drop_nulls()
    if not early.len() or (early > 0).sum() <= _SKEWED_PART * early.len():
        return 0
    return int(early.quantile(1 - _SKEWED_PART, "nearest") or 0)


def _ahead_ns(kernels: pl.DataFrame, launches: pl.DataFrame) -> int:
    """How far it is ahead, if most calls that wait for all kernels return before these end.

    It is so far at least. At most it is the shortest way of a kernel from its launch, which is a
    latency longer on a device that was idle once: a window begins with such a one.
    """
    waits = launches.filter(pl.col("name").is_in(_WAITS_FOR_ALL)).sort("start_ns")
    done = kernels.drop_nulls("launch_start_ns").sort("launch_start_ns")
    if waits.is_empty() or done.is_empty():
        return 0
    ends = done.select(at="launch_start_ns", end=_END.cum_max())
    joined = waits.select(at="start_ns", returned=_END).join_asof(ends, on="at").drop_nulls()
    over = joined["end"] - joined["returned"]
    if (over > _AHEAD_NS).sum() <= over.len() / 2:
        return 0
    shortest: int = min((done["start_ns"] - done["launch_start_ns"]).to_list())
    longest: int = max(over.to_list())
    return max(min(longest, shortest), shortest - _LATENCY_NS)


def whole_steps(marks: pl.DataFrame, events: list[pl.DataFrame], notes: Notes) -> pl.DataFrame:
    """``marks`` of a cut trace less those of steps that lost events of a kind of ``events``.

    What only one step has is no measure of a whole one: then none is kept.
    """
    kept = marks.filter(pl.col("step").is_in(_whole(events[0])))
    for frame in events[1:]:
        kept = kept.filter(pl.col("step").is_in(_whole(frame)))
    if kept["step"].n_unique() < 2:
        kept = kept.clear()
    gone = marks["step"].n_unique() - kept["step"].n_unique()
    if gone:
        steps = f"{gone} of {marks['step'].n_unique()} profiled steps"
        notes.append((steps, "left out: the trace is cut, and holds them in part"))
    return kept


def _whole(frame: pl.DataFrame) -> list[int]:
    counts = frame.drop_nulls("step").group_by("step").len()
    return counts.filter(pl.col("len") >= _WHOLE * pl.col("len").max())["step"].to_list()


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
