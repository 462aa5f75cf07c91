"""Which process a diagnosis speaks of: the measured pass, the verdict's rank, the main process."""

from __future__ import annotations

from typing import Any

import msgspec
import polars as pl

from traceview.derive.facts.rows import frame
from traceview.derive.speedup import MEASURED_PASS
from traceview.tables import Tables


class Focus(msgspec.Struct, frozen=True):
    """One process of one pass; ``pid`` is None where only logs are there and all of them count."""

    pass_name: str
    rank: int | None
    pid: int | None

    @classmethod
    def of(cls, tables: Tables) -> Focus:
        """The process of the verdict; for logs alone, the pass and rank they came with."""
        for row in tables["speedups"].iter_rows(named=True):
            return cls(row["pass"], row["rank"], row["pid"])
        for name in ("compiles", "graph_breaks", "step_counts", "runs"):
            for row in frame(tables, name).head(1).iter_rows(named=True):
                return cls(row["pass"], row["rank"], None)
        return cls(MEASURED_PASS, None, None)

    def rows(self, frame: pl.DataFrame) -> list[dict[str, Any]]:
        """The rows of ``frame`` that belong to it (by pid where the table has one)."""
        mine = frame.filter(pl.col("pass") == self.pass_name)
        mine = mine.filter(pl.col("rank").eq_missing(pl.lit(self.rank, dtype=pl.Int32)))
        if self.pid is not None and "pid" in frame.columns:
            mine = mine.filter(pl.col("pid").is_null() | (pl.col("pid") == self.pid))
        return mine.to_dicts()

    def first(self, frame: pl.DataFrame) -> dict[str, Any]:
        """The first such row, or an empty dict."""
        return next(iter(self.rows(frame)), {})
