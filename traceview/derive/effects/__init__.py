"""Why the two columns differ: named effects whose sum is the difference."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from traceview.derive.windows import Window
from traceview.tables import Tables

__all__ = ["effect_tables"]


def effect_tables(tables: Tables, found: Sequence[Window]) -> dict[str, pl.DataFrame]:
    """waterfall and waterfall_rows; none where one stance is missing."""
    return {}
