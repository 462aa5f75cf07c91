"""The gaps of a device by cause: each is cut along what the host did meanwhile.

A call that waits for the device leaves it without work. Until the device is filled again, launching
counts as the call's fault for as long as the call held the host before the device had drained:
without it the host would have been that much further. What the device waited for the call before
that (for a copy that the call makes itself) is the call's time already.
"""

from __future__ import annotations

import msgspec
import polars as pl

from traceview.derive import causes
from traceview.derive.time.spans import covered_before


class Idle(msgspec.Struct, frozen=True):
    """Idle time: ``rows`` (``row`` of the host line, ``cause``, ``ns``) and what lies beside it.

    ``arriving`` tells of a row that its launch was on its way; ``others`` (``cause``, ``ns``) are
    the device's own doing.
    """

    rows: pl.DataFrame
    others: pl.DataFrame


def idle_time(blocks: pl.DataFrame, line: pl.DataFrame) -> Idle:
    """Time before each of ``blocks`` (``device.blocks_of``), cut along ``line``.

    ``line``: ``row``, ``start``, ``end``, ``cause``, ``waits``; both in order, on one clock.
    """
    gaps = _gaps(blocks)
    line = line.with_columns(pl.col("start", "end").cast(pl.Float64))
    host = gaps.select("start", end="until").filter(pl.col("end") > pl.col("start"))
    ns = covered_before(host, line["end"]) - covered_before(host, line["start"])
    rows = line.select("row", "cause", "start", "end", "waits", ns=ns).with_row_index("at")
    latency = gaps.filter("late").select(
        "start", "end", "launch", ns=pl.col("end") - pl.col("until")
    )
    unknown = float((host["end"] - host["start"]).sum()) - float(rows["ns"].sum())
    rows, latency = _with_refills(gaps, rows, latency.filter(pl.col("ns") > 0))
    own = gaps.filter(~pl.col("late")).select("cause", ns=pl.col("end") - pl.col("start"))
    unlinked = pl.DataFrame({"cause": [causes.UNLINKED], "ns": [unknown if unknown > 1 else 0.0]})
    others = pl.concat([own, unlinked]).group_by("cause", maintain_order=True).agg(
        pl.col("ns").sum()
    )  # fmt: skip
    some = pl.col("ns") > 0
    hosts = rows.select("row", "cause", "ns", arriving=pl.lit(False))
    return Idle(pl.concat([hosts, _launched_by(line, latency)]).filter(some), others.filter(some))


def _launched_by(line: pl.DataFrame, latency: pl.DataFrame) -> pl.DataFrame:
    """``latency`` as rows of the stretches that made the launches."""
    made = (
        latency.select("launch", "ns")
        .sort("launch")
        .join_asof(line.select("row", launch="start", over="end").sort("launch"), on="launch")
    )
    known = pl.when(pl.col("launch") <= pl.col("over")).then("row")
    cause = pl.lit(causes.LAUNCH_BOUND)
    return made.select(known.alias("row"), cause.alias("cause"), "ns", arriving=pl.lit(True))


def _gaps(blocks: pl.DataFrame) -> pl.DataFrame:
    """``start``, ``end`` of gaps, whether the host was ``late`` and ``until`` when, ``cause``."""
    arrived = pl.col("launch") + pl.col("latency")
    # A nanosecond for rounding: the block starts at the later of the two.
    late = (arrived >= pl.col("before") + pl.col("ramp") - 1).fill_null(False)
    gaps = blocks.filter(pl.col("start") > pl.col("before")).select(
        pl.col("before").cast(pl.Float64).alias("start"),
        pl.col("start").cast(pl.Float64).alias("end"),
        "cause", "staged", late=late, launch=pl.col("launch").cast(pl.Float64),
    )  # fmt: skip
    called = pl.col("launch").clip(pl.col("start"), pl.col("end"))
    called = pl.when("staged").then("end").otherwise(called)
    return gaps.with_columns(until=pl.when("late").then(called).otherwise("start"))


def _with_refills(
    gaps: pl.DataFrame, rows: pl.DataFrame, latency: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """``rows`` and ``latency`` with the launching after a wait handed to the wait."""
    waits = rows.filter("waits").select(
        "start", wait="row", of="cause", since="start", back="end"
    )  # fmt: skip
    drained = gaps.select("start", "end").join_asof(waits, on="start").filter(
        pl.col("start") < pl.col("back")
    ).with_row_index("gap")  # fmt: skip
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
        pl.lit(None, dtype=pl.UInt32).alias("at"), pl.col("wait").alias("row"),
        pl.col("of").alias("cause"), "start", "end", waits=pl.lit(True), ns="taken",
    )  # fmt: skip
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
