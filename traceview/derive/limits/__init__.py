"""What each kernel has to move and to compute, next to what the device can do.

kernels    rows of kernel_limits; ``steps``: those of step_limits, with what is left to fuse
generated  work of generated code; ``operators`` and ``products``: of library operators; ``work``
ceilings   what the device can do, and how far a kernel is from it

shape_gains    what other ways to do the heaviest library work save, as measured
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from traceview.derive.kernel_groups import compile_ids
from traceview.derive.limits.ceilings import ceilings_of, compared
from traceview.derive.limits.generated import GeneratedCode
from traceview.derive.limits.kernels import kernel_work_rows
from traceview.derive.limits.steps import step_limit
from traceview.derive.windows import Window
from traceview.tables import Tables, from_rows

__all__ = ["limit_tables"]

Row = dict[str, Any]


def limit_tables(tables: Tables, found: Sequence[Window]) -> dict[str, pl.DataFrame]:
    """kernel_limits and step_limits; none where nothing was profiled."""
    if not found:
        return {}
    code, known = GeneratedCode(tables), compile_ids(tables)
    # The windows of one device: what a kernel of one stance reaches is a limit of both.
    devices: dict[tuple[str, int | None, str], list[tuple[Window, list[Row]]]] = {}
    for window in found:
        on = window.main_kernels["device"].drop_nulls()
        device = f"cuda:{on[0] if len(on) else 0}" if window.on_device else "cpu"
        of_device = devices.setdefault((window.pass_name, window.rank, device), [])
        of_device.append((window, kernel_work_rows(window, code, known)))
    kernels, steps = [], []
    for place, of_device in devices.items():
        measured = ceilings_of(tables, *place)
        ceilings = measured.raised_by(row for _, rows in of_device for row in rows)
        for window, rows in of_device:
            limits = [row | compared(row, ceilings) for row in rows]
            kernels += limits
            step = step_limit(tables, window, limits, code, ceilings)
            steps += [step] if step else []
    return {
        "kernel_limits": from_rows("kernel_limits", kernels),
        "step_limits": from_rows("step_limits", steps),
    }
