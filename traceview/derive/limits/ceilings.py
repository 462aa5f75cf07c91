"""What the device can do, and how far a kernel is from it.

A ceiling is the most that anything reached in the run: its measurement, or a kernel. What earlier
kernels left in the last cache need not come from memory, nor must what a kernel writes have left
the cache when it ends: of what it moves, up to twice what the cache holds counts at the cache's
rate. So no kernel is above its ceiling, and where none was measured none is known.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec
import polars as pl

from traceview.derive.limits.work import AT_MOST, HOST_COPY
from traceview.tables import Tables

Row = dict[str, Any]
#: A kernel within this many µs of the shortest that the device runs is too short for its ceilings.
NEAR_LAUNCH_US = 3.0
#: Below this part of its ceiling a short kernel is bound by its own start and end.
FAR_FROM_CEILING = 0.5
#: The collector copies a quarter of the last cache, or less, to measure it, and at least four times
#: what it holds to measure the memory of a CPU (collectors/child/ceilings.py).
_CACHE_PARTS = 4
_GEMM = "gemm"
_SIZE = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s*([KMG])i?B")
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class Side(NamedTuple):
    """The least seconds of one execution by one ceiling; ``raised``: by what a kernel reached."""

    ceiling: str
    seconds: float
    raised: bool


class Ceilings(msgspec.Struct, frozen=True):
    """Measured ceilings of one device; None and {} where they were not measured.

    ``copy`` and ``l2_copy`` in bytes a second, read and written: in memory and in the cache;
    ``cache``: bytes that the last cache holds at most; ``matmul`` in operations a second by dtype;
    ``gap_us`` the shortest time from the start of one kernel to that of the next; ``fault_us`` what
    a page takes that is touched for the first time. ``raised``: how many times as much kernels
    reached, by ceiling and, of products, the kernels' category.
    """

    copy: float | None = None
    l2_copy: float | None = None
    cache: int | None = None
    matmul: dict[str, float] = {}
    gap_us: float | None = None
    fault_us: float | None = None
    raised: dict[tuple[str, str], float] = {}

    def memory(self, row: Row) -> Side | None:
        """The least time of an execution of ``row`` for its bytes.

        A cache measured slower than the memory behind it was held up by other work: memory counts.
        """
        if row["bytes"] is None or self.cache is None or self.l2_copy is None:
            return None
        cached = min(row["bytes"], 2 * self.cache)
        seconds = cached / max(self.l2_copy, self.copy or 0.0)
        if cached == row["bytes"]:
            return self._side("l2_copy", "", seconds)
        return self._side("copy", "", seconds + (row["bytes"] - cached) / (self.copy or math.inf))

    def compute(self, row: Row) -> Side | None:
        """The same for its operations as matrix products in its dtype.

        What a product reached holds for all kernels; what a convolution reached, which may be
        allowed another precision, for convolutions.
        """
        rate = self.matmul.get(row["dtype"] or "")
        if row["flops"] is None or rate is None:
            return None
        return self._side(f"matmul_{row['dtype']}", row["category"], row["flops"] / rate)

    def _side(self, ceiling: str, category: str, seconds: float) -> Side:
        times = max(self.raised.get((ceiling, of), 1.0) for of in (category, _GEMM))
        return Side(ceiling, seconds / times, times > 1.0)

    def raised_by(self, rows: Iterable[Row]) -> Ceilings:
        """These, raised to what kernels of ``rows`` reached whose bytes or operations are sure."""
        raised: dict[tuple[str, str], float] = {}
        for row in rows:
            memory, compute = _sides(row, self)
            for side, category in ((memory, ""), (compute, row["category"])):
                if side is not None and side.seconds > (seconds := _seconds(row)):
                    key = (side.ceiling, category)
                    raised[key] = max(raised.get(key, 1.0), side.seconds / seconds)
        return msgspec.structs.replace(self, raised=raised)


def ceilings_of(tables: Tables, pass_name: str, rank: int | None, device: str) -> Ceilings:
    """Ceilings of ``device`` (cuda:0, cpu) by rank ``rank``, of this pass if it measured them."""
    rows = tables["ceilings"].filter(
        pl.col("rank").eq_missing(pl.lit(rank, dtype=pl.Int32))
        & pl.col("device").eq(device)
        & pl.col("value").gt(0)
    )
    rows = rows.sort(pl.col("pass").ne(pass_name), maintain_order=True)
    by_kind: dict[str, Row] = {}
    matmul: dict[str, float] = {}
    for row in rows.iter_rows(named=True):
        by_kind.setdefault(row["kind"], row)
        if row["kind"] == "matmul" and row["dtype"]:
            matmul.setdefault(row["dtype"], row["value"] * 1e12)
    values = {kind: row["value"] for kind, row in by_kind.items()}
    moved = {
        kind: float(size[1]) * _UNITS[size[2]]
        for kind, row in by_kind.items()
        if (size := _SIZE.search(row["size"] or ""))
    }
    cache = moved["l2_copy"] * _CACHE_PARTS if "l2_copy" in moved else None
    if device == "cpu" and "copy" in moved:
        cache = moved["copy"] / _CACHE_PARTS
    return Ceilings(
        copy=values["copy"] * 1e9 if "copy" in values else None,
        l2_copy=values["l2_copy"] * 1e9 if "l2_copy" in values else None,
        cache=None if cache is None else int(cache),
        matmul=matmul,
        gap_us=values.get("kernel_gap"),
        fault_us=values.get("page_fault"),
    )


def in_tf32(ceiling: Mapping[str, Any]) -> bool:
    """Whether a float32 product of ``ceilings`` ran on tensor cores, as the script allows it."""
    return "tf32 on" in (ceiling["detail"] or "")


def compared(row: Row, ceilings: Ceilings) -> Row:
    """Achieved rates, floor and bound of ``row`` of kernel_limits; no more than is known."""
    seconds = _seconds(row)
    if not 0 < seconds < math.inf:
        return {}
    work, flops = row["bytes"], row["flops"]
    found: Row = {
        "gb_s": None if work is None else work / seconds / 1e9,
        "tflop_s": None if flops is None else flops / seconds / 1e12,
    }
    sides = _sides(row, ceilings)
    if least := [side.seconds for side in sides if side]:
        found["floor_ms"] = min(max(least) * row["count"] * 1e3, row["ms"])
    # What is read through an index is at most this much: so is the part of the ceiling.
    memory = ceilings.memory(row) if row["bytes_from"] != HOST_COPY else None
    known = [side for side in (memory, sides[1]) if side]
    if not known:
        return found
    decides = max(known, key=lambda side: side.seconds)
    part = min(1.0, decides.seconds / seconds)
    bound = {"copy": "memory", "l2_copy": "cache"}.get(decides.ceiling, "compute")
    if part < FAR_FROM_CEILING:
        if len(known) < (work is not None) + (flops is not None):
            return found
        near = ceilings.gap_us is not None and seconds * 1e6 <= ceilings.gap_us + NEAR_LAUNCH_US
        of_copy = (work or 0) / (ceilings.copy or math.inf) / seconds
        if near or of_copy < FAR_FROM_CEILING:
            bound = "overhead" if near else "neither"
        elif of_copy <= 1.0:
            bound = "memory_or_cache"
    return found | {
        "of_ceiling": part,
        "bound": bound,
        "ceiling": decides.ceiling,
        "ceiling_from": "kernel" if decides.raised else "measured",
    }


def _seconds(row: Row) -> float:
    """Of one execution; infinite where it is not known."""
    return row["ms"] / row["count"] / 1e3 if row["ms"] > 0 and row["count"] > 0 else math.inf


def _sides(row: Row, ceilings: Ceilings) -> tuple[Side | None, Side | None]:
    """Least times of an execution by bytes and by operations, where these must be done."""
    sure = row["bytes_kind"] != AT_MOST and row["bytes_from"] != HOST_COPY
    return (
        ceilings.memory(row) if sure else None,
        ceilings.compute(row) if row["flops_kind"] != AT_MOST else None,
    )
