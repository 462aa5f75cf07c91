"""Accounts of windows as rows of table ``accounting``."""

from __future__ import annotations

from typing import Any

import polars as pl

from traceview.derive import causes
from traceview.derive.time.accounting import Account
from traceview.derive.windows import Window

Row = dict[str, Any]


def accounting(window: Window, account: Account) -> list[Row]:
    """Rows of table ``accounting`` for one window."""
    rows = [*_busy(window, account), *_causes(window, account)]
    if account.cost.left is not None:
        left = {"category": causes.UNEXPLAINED, "kind": causes.UNEXPLAINED, "clock": _clock(window)}
        ms = window.ms_per_step(account.cost.left)
        rows.append({**window.head, **left, "ms": ms, "profiled_ms": None, "count": None})
    return rows


def machine_speed(window: Window, account: Account, timed_ms: float) -> Row:
    """The row of ``accounting`` between the step as timed and as it was around the window."""
    around = window.ms_per_step(account.cost.timed or 0.0) or 0.0
    return {
        **window.head, "category": causes.SPEED, "kind": causes.SPEED, "clock": _clock(window),
        "ms": timed_ms - around, "profiled_ms": None, "count": None,
    }  # fmt: skip


def _busy(window: Window, account: Account) -> list[Row]:
    counts = dict(window.kernels["category"].value_counts().iter_rows())
    return [
        {
            **window.head, "category": name, "kind": "busy", "clock": "device",
            "ms": window.ms_per_step(ns), "profiled_ms": window.ms_per_step(account.busy[name]),
            "count": window.per_step(counts.get(name, 0)),
        }
        for name, ns in account.busy_as_timed().items()
    ]  # fmt: skip


def _causes(window: Window, account: Account) -> list[Row]:
    """Everything that is no device's work; counted are the operators and calls that took part."""
    line = account.line.select(pl.col("row"), event=pl.coalesce("call", "op"))
    rows = account.rows.with_columns(pl.col("row").cast(line["row"].dtype))
    found = (
        rows.join(line, on="row", how="left")
        .group_by("cause", maintain_order=True)
        .agg(
            pl.col("profiled", "ns").sum(),
            pl.col("event").filter(~pl.col("arriving")).drop_nulls().n_unique(),
        )
    )
    return [
        {
            **window.head, "category": cause, "kind": _kind(window, cause), "clock": _clock(window),
            "ms": window.ms_per_step(ns), "profiled_ms": window.ms_per_step(profiled),
            "count": window.per_step(count) if count else None,
        }
        for cause, profiled, ns, count in found.iter_rows()
    ]  # fmt: skip


def _clock(window: Window) -> str:
    return "device" if window.on_device else "host"


def _kind(window: Window, cause: str) -> str:
    if window.on_device:
        return "idle"
    if cause.startswith("overhead"):
        return "overhead"
    return "other" if cause in causes.WORKLESS else "busy"
