"""What each kernel has to move and to compute, next to what the device can do.

kernels    rows of kernel_limits; ``steps``: those of step_limits, with what is left to fuse
generated  work of generated code; ``operators`` and ``products``: of library operators; ``work``
ceilings   what the device can do, and how far a kernel is from it

shape_gains    what other ways to do the heaviest library work save, as measured
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from traceview.derive.kernel_groups import compile_ids
from traceview.derive.limits.ceilings import ceilings_of
from traceview.derive.limits.generated import GeneratedCode
from traceview.derive.limits.kernels import kernel_limits
from traceview.derive.limits.steps import step_limit
from traceview.derive.windows import Window
from traceview.tables import Tables, from_rows

__all__ = ["limit_tables"]


def limit_tables(tables: Tables, found: Sequence[Window]) -> dict[str, pl.DataFrame]:
    """kernel_limits and step_limits; none where nothing was profiled."""
    if not found:
        return {}
    code, known = GeneratedCode(tables), compile_ids(tables)
    kernels, steps = [], []
    for window in found:
        devices = window.main_kernels["device"].drop_nulls()
        device = f"cuda:{devices[0] if len(devices) else 0}" if window.on_device else "cpu"
        ceilings = ceilings_of(tables, window.pass_name, window.rank, device)
        rows = kernel_limits(window, code, known, ceilings)
        kernels += rows
        step = step_limit(tables, window, rows, code, ceilings)
        steps += [step] if step else []
    return {
        "kernel_limits": from_rows("kernel_limits", kernels),
        "step_limits": from_rows("step_limits", steps),
    }
