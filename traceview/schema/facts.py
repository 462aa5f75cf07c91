"""Tables of facts that rules and the report's sections share (``traceview.derive.facts``)."""

from __future__ import annotations

from traceview.schema.columns import TableSpec

TABLES: tuple[TableSpec, ...] = ()
