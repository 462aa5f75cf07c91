"""What the compiler did and what it costs: fusion in words, passes, guards, call path, first call."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from traceview.derive.windows import Window
from traceview.tables import Tables

__all__ = ["compiler_tables"]


def compiler_tables(tables: Tables, found: Sequence[Window]) -> dict[str, pl.DataFrame]:
    """fusion_notes, graph_passes, guard_costs, call_path and first_calls, as far as there is something to read."""
    return {}
