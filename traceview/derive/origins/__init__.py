"""From kernel to source and back: user lines of operators, groups of kernels that belong together."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from traceview.derive.windows import Window
from traceview.tables import Tables

__all__ = ["origin_tables"]


def origin_tables(tables: Tables, found: Sequence[Window]) -> dict[str, pl.DataFrame]:
    """op_sources, matched_kernels and match_groups; none where nothing was profiled."""
    return {}
