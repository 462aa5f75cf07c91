"""Busy time of a device by category, every instant counted once."""

from __future__ import annotations

import msgspec
import polars as pl

from traceview.derive.intervals import Interval, length, shared_time

COMMUNICATION = "communication"


class Communication(msgspec.Struct, frozen=True):
    """ns in which the device communicates: with nothing beside it, and behind other kernels."""

    exposed: int
    hidden: int


def intervals_of(frame: pl.DataFrame) -> list[Interval]:
    """Start and end of every row, ns."""
    ends = frame["start_ns"] + frame["duration_ns"]
    return list(zip(frame["start_ns"].to_list(), ends.to_list(), strict=True))


def busy_ns(kernels: pl.DataFrame) -> int:
    """Time in which the device ran any of them, overlaps counted once."""
    return length(intervals_of(kernels))


def busy_shares(kernels: pl.DataFrame) -> dict[str, float]:
    """ns by category. Communication has what nothing else covers; kernels that overlap otherwise
    (on several streams, and a little on one) share their time evenly.
    """
    others = kernels.filter(pl.col("category") != COMMUNICATION)
    shares = shared_time(others["category"].to_list(), intervals_of(others))
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
