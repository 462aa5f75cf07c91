"""What the profiler windows say: accounting, step_counts, kernel_groups and the cost of regions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from traceview.derive.kernel_groups import Origins, compile_ids, kernel_groups
from traceview.derive.region_profile import region_costs
from traceview.derive.time.accounting import accounting
from traceview.derive.time.device import busy_ns
from traceview.derive.time.host import (
    call_overhead_ns,
    compiled_regions,
    gaps,
    lookup_ns,
    working_operators,
)
from traceview.derive.windows import Window, windows
from traceview.tables import Tables, from_rows

Row = dict[str, Any]


def profile_tables(
    tables: Tables,
    step_ms: Mapping[str, float] | None = None,
    found: Sequence[Window] | None = None,
) -> dict[str, pl.DataFrame]:
    """The tables that come from profiler windows; none where nothing was profiled.

    ``step_ms`` gives a stance's milliseconds per step without a profiler, as far as it is known;
    ``found`` are the windows, if they were made already.
    """
    found = list(windows(tables)) if found is None else found
    if not found:
        return {}
    origins, known = Origins(tables), compile_ids(tables)
    hidden = _hides_kernels(tables, found)
    rows: dict[str, list[Row]] = {
        "accounting": [
            row
            for window in found
            for row in accounting(
                window, (step_ms or {}).get(window.stance), graphs_hold_kernels=hidden
            )
        ],
        "step_counts": [_counts(window) for window in found],
        "kernel_groups": [row for window in found for row in kernel_groups(window, origins, known)],
        "region_costs": region_costs(tables, found),
    }
    return {name: from_rows(name, of_table) for name, of_table in rows.items()}


def _counts(window: Window) -> Row:
    between = gaps(window)
    span = window.span[1] - window.span[0]
    return {
        **window.head,
        "steps": window.steps,
        "step_ms": window.ms_per_step(span),
        "kernels": window.per_step(
            (window.kernels if window.on_device else working_operators(window)).height
        ),
        "compiled_regions": window.per_step(compiled_regions(window)),
        "cache_lookup_ms": window.ms_per_step(lookup_ns(window)),
        "call_overhead_ms": window.ms_per_step(call_overhead_ns(window)),
        "gap_ms": None if between is None else window.ms_per_step(sum(between)),
        "gaps": None if between is None else window.per_step(len(between)),
        **(_device_counts(window, span) if window.on_device else {}),
    }


def _device_counts(window: Window, span: int) -> Row:
    busy = busy_ns(window)
    kinds = window.launches["kind"]
    return {
        "device_busy_ms": window.ms_per_step(busy),
        "device_idle_ms": window.ms_per_step(span - busy),
        "launches": window.per_step(int(kinds.is_in(["launch", "graph_launch"]).sum())),
        "graph_launches": window.per_step(int((kinds == "graph_launch").sum())),
        "syncs": window.per_step(int((kinds == "sync").sum())),
    }


def _hides_kernels(tables: Tables, found: Sequence[Window]) -> bool:
    """Inductor wrote C++ kernels, yet no window recorded one: the profiler was not told of them."""
    written = (tables["generated_kernels"]["category"] == "cpp").any()
    seen = any(window.ops["category"].str.starts_with("generated_").any() for window in found)
    return bool(written) and not seen
