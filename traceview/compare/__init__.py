"""Two runs side by side: what got slower or faster, which causes came, went, grew or moved."""

from __future__ import annotations

from traceview.compare.build import compare
from traceview.compare.contract import to_json
from traceview.compare.model import Comparison
from traceview.compare.side import Side, cache_counts

__all__ = ["Comparison", "Side", "cache_counts", "compare", "to_json"]
