"""Compare two runs: what got slower or faster, and which causes are new, gone or changed."""

from __future__ import annotations

from traceview.compare.build import compare
from traceview.compare.model import Comparison, to_json
from traceview.compare.side import Side, cache_counts

__all__ = ["Comparison", "Side", "cache_counts", "compare", "to_json"]
