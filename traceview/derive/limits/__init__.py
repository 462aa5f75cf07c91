"""What each kernel has to move and to compute, beside what the device can do."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from traceview.derive.windows import Window
from traceview.tables import Tables

__all__ = ["limit_tables"]


def limit_tables(tables: Tables, found: Sequence[Window]) -> dict[str, pl.DataFrame]:
    """kernel_limits and step_limits; none where nothing was profiled."""
    return {}
