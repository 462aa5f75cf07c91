"""What the device can do, and how far a kernel is from it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
import polars as pl

from traceview.derive.limits.work import Work
from traceview.tables import Tables

Row = dict[str, Any]
#: A kernel within this many µs of the shortest that the device runs is too short for its ceilings.
NEAR_LAUNCH_US = 3.0
#: Below this part of its ceiling a short kernel is bound by its own start and end.
FAR_FROM_CEILING = 0.5
_SIZE = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s*([KMG])i?B")
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class Ceilings(msgspec.Struct, frozen=True):
    """Measured ceilings of one device; None and {} where they were not measured.

    ``copy`` and ``l2_copy`` in bytes a second, read and written; ``l2_bytes`` is what was moved to
    measure ``l2_copy``; ``matmul`` in operations a second by dtype; ``gap_us`` the shortest time
    from the start of one kernel to that of the next; ``fault_us`` what a page takes that is touched
    for the first time.
    """

    copy: float | None = None
    l2_copy: float | None = None
    l2_bytes: int | None = None
    matmul: dict[str, float] = {}
    gap_us: float | None = None
    fault_us: float | None = None

    def memory(self, moved: int) -> tuple[float, str] | None:
        """Seconds to move ``moved`` bytes, and by which ceiling: a small working set is cached.

        A cache measured slower than the memory behind it was held up by other work: memory counts.
        """
        fits = self.l2_bytes and moved <= self.l2_bytes
        if fits and self.l2_copy and self.l2_copy >= (self.copy or 0.0):
            return moved / self.l2_copy, "l2_copy"
        return (moved / self.copy, "copy") if self.copy else None

    def compute(self, flops: int, dtype: str | None) -> tuple[float, str] | None:
        """Seconds to compute ``flops`` as matrix products in ``dtype``."""
        rate = self.matmul.get(dtype or "")
        return (flops / rate, f"matmul_{dtype}") if rate else None


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
    size = _SIZE.search(by_kind.get("l2_copy", {}).get("size") or "")
    return Ceilings(
        copy=values["copy"] * 1e9 if "copy" in values else None,
        l2_copy=values["l2_copy"] * 1e9 if "l2_copy" in values else None,
        l2_bytes=int(float(size[1]) * _UNITS[size[2]]) if size else None,
        matmul=matmul,
        gap_us=values.get("kernel_gap"),
        fault_us=values.get("page_fault"),
    )


def in_tf32(ceiling: Mapping[str, Any]) -> bool:
    """Whether a float32 product of ``ceilings`` ran on tensor cores, as the script allows it."""
    return "tf32 on" in (ceiling["detail"] or "")


def compared(
    work: Work | None, count: float, ms: float, ceilings: Ceilings, *, fixed: bool = False
) -> Row:
    """Achieved rates, floor and bound of kernels that take ``ms`` in ``count`` executions.

    ``fixed``: no ceiling of the device applies (a copy to or from the host).
    """
    if work is None or not ms > 0 or not count > 0:
        return {}
    seconds = ms / count / 1e3
    row: Row = {
        "gb_s": None if work.bytes is None else work.bytes / seconds / 1e9,
        "tflop_s": None if work.flops is None else work.flops / seconds / 1e12,
    }
    floors = [
        None if work.bytes is None else ceilings.memory(work.bytes),
        None if work.flops is None else ceilings.compute(work.flops, work.dtype),
    ]
    asked = [work.bytes is not None, work.flops is not None]
    if fixed or any(a and f is None for a, f in zip(asked, floors, strict=True)) or not any(asked):
        return row
    floor, name = max(found for found in floors if found is not None)
    bound = "compute" if name.startswith("matmul") else "memory"
    if floor < FAR_FROM_CEILING * seconds:
        gap_us = ceilings.gap_us
        near = gap_us is not None and seconds * 1e6 <= gap_us + NEAR_LAUNCH_US
        bound = "overhead" if near else "neither"
    return row | {
        "floor_ms": floor * count * 1e3,
        "of_ceiling": floor / seconds,
        "bound": bound,
        "ceiling": name,
    }
