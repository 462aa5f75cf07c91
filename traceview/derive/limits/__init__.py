"""What each kernel has to move and to compute, next to what the device can do.

kernels    rows of kernel_limits; ``steps``: those of step_limits, with what is left to fuse
generated  work of generated code; ``operators`` and ``products``: of library operators; ``work``
ceilings   what the device can do, and how far a kernel is from it
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
from traceview.parse.kineto.categories import operator_category
from traceview.tables import Tables, from_rows

__all__ = ["limit_tables", "shape_gains"]

Row = dict[str, Any]
_AS_IT_IS = "as it is"
_KINDS = ("gemm", "convolution", "attention", "indexing")


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


def shape_gains(tables: Tables) -> pl.DataFrame:
    """What other ways to do the step's heaviest library work save; empty where nothing was timed.

    Both ways were timed on the step's own shapes after its end. A dtype or a precision is a choice
    for all of a model's products, so all shapes of a kind count together.
    """
    trials = tables["shape_trials"]
    names = trials["op"].unique().drop_nulls().to_list()
    kinds = {name: "fft" if "_fft_" in name else "along" for name in names}
    kinds |= {name: kind for name in names if (kind := operator_category(name)) in _KINDS}
    key = ["pass", "rank", "op", "shape", "dtype", "count", "clock"]
    base = trials.filter(way=_AS_IT_IS).select(*key, base="value")
    both = (
        trials.filter(pl.col("way") != _AS_IT_IS)
        .join(base, on=key, nulls_equal=True)
        .with_columns(kind=pl.col("op").replace_strict(kinds, default=None, return_dtype=pl.String))
    )
    times = pl.col("count") / 1e3
    found = both.group_by("pass", "rank", "kind", "way", "dtype", "clock", maintain_order=True).agg(
        pl.len().cast(pl.Int32).alias("shapes"),
        (pl.col("base") * times).sum().alias("base_ms"),
        (pl.col("value") * times).sum().alias("ms"),
        pl.col("op").unique(maintain_order=True).alias("ops"),
        pl.col("shape").sort_by(pl.col("base") * times).last(),
    )
    rows = found.with_columns(share=1 - pl.col("ms") / pl.col("base_ms")).to_dicts()
    return from_rows("shape_gains", rows)
