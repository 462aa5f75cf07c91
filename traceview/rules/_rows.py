"""Names of ``traceview.derive.facts.rows`` for rules that have not moved to ``rules.kit`` yet."""

from __future__ import annotations

from traceview.derive.facts.rows import Row, first, first_rank, frame, rows

__all__ = ["Row", "first", "first_rank", "frame", "rows"]
