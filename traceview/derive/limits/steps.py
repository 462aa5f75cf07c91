"""step_limits: one stance's step beside the limits of the device."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from traceview.derive.causes import LAUNCH_BOUND, UNLINKED
from traceview.derive.limits.ceilings import Ceilings
from traceview.derive.limits.fusible import fusible
from traceview.derive.limits.generated import GeneratedCode
from traceview.derive.windows import Window, far_longer
from traceview.tables import Tables

Row = dict[str, Any]
#: Where more than this part of the idle time has no cause, none of it is said to be launches'.
_NAMELESS = 0.1


def step_limit(
    tables: Tables, window: Window, rows: Sequence[Row], code: GeneratedCode, ceilings: Ceilings
) -> Row | None:
    """The row of one window, of its ``kernel_limits``; None where no kernel ran in marked steps.

    Kernels that overlap on several streams are longer together than the device is busy: a part of
    them counts as that part of the busy time.
    """
    total = sum(row["ms"] for row in rows)
    if not total:
        return None
    accounts = _mine(tables, "accounting", window)
    busy = _sum(row["ms"] for row in accounts if row["kind"] == "busy")
    scale = 1.0 if busy is None else busy / total
    idle = [row for row in accounts if row["kind"] == "idle"] if window.on_device else []
    counts = next(iter(_mine(tables, "step_counts", window)), {})
    return {
        **window.head,
        "step_ms": counts.get("timed_step_ms"),
        "busy_ms": total if busy is None else busy,
        "known_ms": scale * sum(row["ms"] for row in rows if _is_known(row)),
        "limit_ms": _scaled(_limit(rows, ceilings.gap_us or 0.0), scale),
        "fusible_ms": _scaled(_fusible(window, code, ceilings), scale),
        "idle_ms": _sum(row["ms"] for row in idle),
        "launch_idle_ms": None if _is_unlike(counts) else _launch_idle(idle),
    }


def _is_unlike(counts: Row) -> bool:
    known = (counts.get(f"{name}_ms") for name in ("unexplained", "timed_step", "beside_step"))
    return far_longer(*known)


def _launch_idle(idle: Sequence[Row]) -> float | None:
    """0 where the device idles for other reasons only; None where causes are not known."""
    known = [row for row in idle if row["ms"] is not None]
    nameless = sum(row["ms"] for row in known if row["category"] == UNLINKED)
    if nameless > _NAMELESS * sum(row["ms"] for row in known):
        return None
    return sum(r["ms"] for r in known if r["category"] == LAUNCH_BOUND) if known else None


def _mine(tables: Tables, name: str, window: Window) -> list[Row]:
    return window.own(tables[name]).to_dicts()


def _is_known(row: Row) -> bool:
    return row["bytes"] is not None or row["flops"] is not None


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _scaled(value: float | None, scale: float) -> float | None:
    return None if value is None else value * scale


def _limit(rows: Sequence[Row], gap_us: float) -> float | None:
    """Every kernel at its ceiling, one without a floor as it is; None if no floor is known.

    A kernel that was faster than its ceiling (its bytes were in a cache) keeps its time; none
    becomes shorter than a kernel that does nothing.
    """
    limits: list[float] = []
    for row in rows:
        floor = row.get("floor_ms")
        least = row["count"] * gap_us / 1e3
        limits.append(row["ms"] if floor is None else min(row["ms"], max(floor, least)))
    return sum(limits) if any(row.get("floor_ms") is not None for row in rows) else None


def _fusible(window: Window, code: GeneratedCode, ceilings: Ceilings) -> float | None:
    """Spared kernel time and, where it was measured, the gap before every launch that goes."""
    found = fusible(window, code)
    if found is None:
        return None
    gaps_ns = found.launches * (ceilings.gap_us or 0.0) * 1e3
    return window.ms_per_step(found.ns + gaps_ns)
