"""What a device did in a window: busy time by category, blocks of work, and why it idled between.

A block is a stretch in which the device is busy without a pause, on however many streams. It begins
at ``max(before + ramp, launch + latency)``, ``before`` being the end of the block before it:

- the launch of its first kernel began after ``before``, or so shortly earlier that the launch's own
  latency decides: the host was late;
- the launch was made in time: the ramp is the device's own doing (a dependency, a stream that
  waits, the way from one kernel to the next);
- the kernel is of the same cudagraph replay as the one before, or its launch was not recorded: the
  block comes a ramp after ``before``, whenever that is.

The gaps between blocks are cut along what the host did meanwhile. A call that waits for the device
leaves it without work. Until the device is filled again, launching counts as the call's fault for
as long as the call held the host before the device had drained: without it the host would have been
that much further. What the device waited for the call before that (for a copy that the call makes
itself) is the call's time already.
"""

from __future__ import annotations

import msgspec
import polars as pl

from traceview.derive import causes
from traceview.derive.intervals import Interval, covered_before, length, shared_time
from traceview.derive.windows import Window

COMMUNICATION = "communication"
#: ``Memcpy HtoD (Pinned -> Device)``, or the way back.
_PINNED = r"^Memcpy .*\bPinned\b"
#: From a launch call's start to the kernel's at an empty queue: at most this, where a window shows
#: only kernels that waited in a queue (7 to 9 µs on an H200 under the profiler).
LATENCY_NS = 10_000
#: Time between two kernels that wait in a queue, where a window shows none: half of an H200's.
RAMP_NS = 800


class Communication(msgspec.Struct, frozen=True):
    """ns in which the device communicates: with nothing else running, and behind other kernels."""

    exposed: int
    hidden: int


class Idle(msgspec.Struct, frozen=True):
    """Idle time of a device.

    ``rows`` (``row`` of the host line, ``cause``, ``ns``): what the host did meanwhile;
    ``arriving``: the launch was on its way. ``others`` (``cause``, ``ns``): the device's own doing.
    """

    rows: pl.DataFrame
    others: pl.DataFrame


def device_span(window: Window) -> Interval:
    """From the first step's begin, or the end of earlier work, to the end of host or device."""
    low, high = window.host_span
    kernels = window.main_kernels
    starts = kernels["start_ns"].to_list()
    ends = (kernels["start_ns"] + kernels["duration_ns"]).to_list()
    earlier = low if window.begun_ns is None else min([window.begun_ns, *starts])
    return max(low, earlier), max([high, *ends])


def busy_ns(kernels: pl.DataFrame) -> int:
    """Time in which the device ran any of them, overlaps counted once."""
    return length(_intervals(kernels))


def busy_shares(kernels: pl.DataFrame) -> dict[str, float]:
    """ns by category. Communication has what nothing else covers; kernels that overlap otherwise
    (on several streams, and a little on one) share their time evenly. Every category has its share,
    0 where all its kernels took no time.
    """
    others = kernels.filter(pl.col("category") != COMMUNICATION)
    categories = others["category"].to_list()
    shares = dict.fromkeys(categories, 0.0) | shared_time(categories, _intervals(others))
    split = communication(kernels)
    return shares if split is None else {**shares, COMMUNICATION: split.exposed}


def communication(kernels: pl.DataFrame) -> Communication | None:
    """Exposed and hidden communication; None where there is none."""
    mine = pl.col("category") == COMMUNICATION
    talking = kernels.filter(mine)
    if talking.is_empty():
        return None
    exposed = busy_ns(kernels) - busy_ns(kernels.filter(~mine))
    return Communication(exposed, busy_ns(talking) - exposed)


def exposed_copies_ns(kernels: pl.DataFrame) -> int | None:
    """Time of copies between the device and pinned memory while nothing else ran; None: no copy.

    Copies of pageable memory hold the host, which is another cause.
    """
    mine = pl.col("name").str.contains(_PINNED)
    if kernels.filter(mine).is_empty():
        return None
    return busy_ns(kernels) - busy_ns(kernels.filter(~mine))


def _intervals(kernels: pl.DataFrame) -> list[Interval]:
    ends = kernels["start_ns"] + kernels["duration_ns"]
    return list(zip(kernels["start_ns"].to_list(), ends.to_list(), strict=True))


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
    # In this window: a launch's latency into an empty queue, and the ramp between queued kernels.
    launched = found.filter(~pl.col("tied"))
    late = launched.filter(pl.col("launch") >= pl.col("before"))["lag"].sort().to_list()
    lags = late[: max(1, len(late) // 10)] or sorted(launched["lag"].to_list())[:1]
    latency = min(lags[-1], LATENCY_NS) if lags else LATENCY_NS
    queued = launched.filter(pl.col("launch") + 3 * latency < pl.col("before"))
    gaps = queued["gap"].sort().to_list()
    ramp = gaps[len(gaps) // 2] if gaps else RAMP_NS
    arrived = pl.col("launch") + latency
    is_late = ~pl.col("tied") & (arrived >= pl.col("before") + pl.min_horizontal("gap", ramp))
    usual = pl.min_horizontal("lag", latency)
    cause = (
        pl.when("replay")
        .then(pl.lit(causes.IN_GRAPH))
        .when("tied")
        .then(pl.lit(causes.UNLINKED))
        .otherwise(pl.lit(causes.DEVICE))
    )
    return found.select(
        "start",
        "end",
        "before",
        "staged",
        launch=pl.when(~pl.col("tied")).then("launch"),
        latency=pl.when(is_late).then("lag").otherwise(usual).fill_null(0),
        ramp=pl.when(is_late).then(pl.min_horizontal("gap", ramp)).otherwise("gap"),
        cause=cause,
    )


def _stretches(kernels: pl.DataFrame) -> pl.DataFrame:
    """``start``, ``end``, ``launch`` of the first kernel, and whether it goes on with a replay."""
    replay = pl.col("correlation") == pl.col("correlation").shift(1)
    ordered = (
        kernels.filter(pl.col("duration_ns") > 0)
        .sort("start_ns")
        .select(
            start="start_ns",
            end=pl.col("start_ns") + pl.col("duration_ns"),
            launch="launch_start_ns",
            staged=pl.col("name").str.contains("Pageable"),
            replay=replay.fill_null(False),
        )
    )
    new = pl.col("start") > pl.col("end").cum_max().shift(1)
    numbered = ordered.with_columns(number=new.fill_null(True).cum_sum())
    return numbered.group_by("number", maintain_order=True).agg(
        pl.col("start").first(), pl.col("end").max(), pl.col("launch", "replay", "staged").first()
    )


def idle_time(blocks: pl.DataFrame, line: pl.DataFrame) -> Idle:
    """Time before each of ``blocks`` (``blocks_of``), cut along ``line``.

    ``line``: ``row``, ``start``, ``end``, ``cause``, ``waits``; both in order, on one clock.
    """
    # Gaps: whether the host was ``late``, and ``until`` when. A nanosecond is for rounding: a block
    # starts at the later of the two.
    arrived = pl.col("launch") + pl.col("latency")
    late = (arrived >= pl.col("before") + pl.col("ramp") - 1).fill_null(False)
    gaps = blocks.filter(pl.col("start") > pl.col("before")).select(
        pl.col("before").cast(pl.Float64).alias("start"),
        pl.col("start").cast(pl.Float64).alias("end"),
        "cause",
        "staged",
        late=late,
        launch=pl.col("launch").cast(pl.Float64),
    )
    called = pl.when("staged").then("end").otherwise(pl.col("launch").clip("start", "end"))
    gaps = gaps.with_columns(until=pl.when("late").then(called).otherwise("start"))
    line = line.with_columns(pl.col("start", "end").cast(pl.Float64))
    host = gaps.select("start", end="until").filter(pl.col("end") > pl.col("start"))
    ns = covered_before(host, line["end"]) - covered_before(host, line["start"])
    rows = line.select("row", "cause", "start", "end", "waits", ns=ns).with_row_index("at")
    unknown = float((host["end"] - host["start"]).sum()) - float(rows["ns"].sum())

    latency = gaps.filter("late").select(
        "start", "end", "launch", ns=pl.col("end") - pl.col("until")
    )
    rows, latency = _with_refills(gaps, rows, latency.filter(pl.col("ns") > 0))
    hosts = rows.select("row", "cause", "ns", arriving=pl.lit(False))

    # The stretch that made a launch has its latency.
    starts = line.select("row", launch="start", over="end").sort("launch")
    made = latency.select("launch", "ns").sort("launch").join_asof(starts, on="launch")
    arriving = made.select(
        pl.when(pl.col("launch") <= pl.col("over")).then("row").alias("row"),
        pl.lit(causes.LAUNCH_BOUND).alias("cause"),
        "ns",
        arriving=pl.lit(True),
    )

    own = gaps.filter(~pl.col("late")).select("cause", ns=pl.col("end") - pl.col("start"))
    unlinked = pl.DataFrame({"cause": [causes.UNLINKED], "ns": [unknown if unknown > 1 else 0.0]})
    others = pl.concat([own, unlinked]).group_by("cause", maintain_order=True)
    some = pl.col("ns") > 0
    return Idle(
        pl.concat([hosts, arriving]).filter(some), others.agg(pl.col("ns").sum()).filter(some)
    )


def _with_refills(
    gaps: pl.DataFrame, rows: pl.DataFrame, latency: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """``rows`` and ``latency`` with the launching after a wait handed to the wait."""
    waits = rows.filter("waits").select("start", wait="row", of="cause", since="start", back="end")
    drained = gaps.select("start", "end").join_asof(waits, on="start")
    drained = drained.filter(pl.col("start") < pl.col("back")).with_row_index("gap")
    launching = pl.col("cause") == causes.LAUNCH_BOUND
    refills = _begun_in(rows.filter(launching & (pl.col("ns") > 0)), drained)
    arriving = _begun_in(latency, drained)
    pool = pl.concat([refills.select("gap", "ns"), arriving.select("gap", "ns")])
    drained = drained.join(pool.group_by("gap").agg(pool=pl.col("ns").sum()), on="gap")
    drained = drained.filter(pl.col("pool") > 0)

    host = gaps.select("start", end="until")
    waited = covered_before(host, drained["start"]) - covered_before(host, drained["since"])
    held = pl.col("start") - pl.col("since") - waited
    drained = drained.with_columns(taken=pl.min_horizontal(held, "pool"))
    left = drained.select("gap", left=1 - pl.col("taken") / pl.col("pool"))
    handed = drained.select(
        pl.lit(None, dtype=pl.UInt32).alias("at"),
        pl.col("wait").alias("row"),
        pl.col("of").alias("cause"),
        "start",
        "end",
        waits=pl.lit(True),
        ns="taken",
    )
    return (
        pl.concat([_scaled(rows, refills, left, "at"), handed]),
        _scaled(latency, arriving, left, "start"),
    )


def _begun_in(rows: pl.DataFrame, gaps: pl.DataFrame) -> pl.DataFrame:
    """``rows`` (in order) that begin inside one of ``gaps``, with its number."""
    placed = rows.join_asof(gaps.select("start", "gap", over="end"), on="start")
    return placed.filter(pl.col("start") < pl.col("over"))


def _scaled(rows: pl.DataFrame, some: pl.DataFrame, left: pl.DataFrame, key: str) -> pl.DataFrame:
    """``rows`` with ``left`` of their time where they are among ``some``."""
    parts = some.select(key, "gap").join(left, on="gap").select(key, "left")
    joined = rows.join(parts, on=key, how="left", maintain_order="left")
    return joined.with_columns(ns=pl.col("ns") * pl.col("left").fill_null(1.0)).drop("left")
