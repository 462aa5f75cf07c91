"""The comparison as JSON: the public contract, and its schema (docs/compare-and-check.md)."""

from __future__ import annotations

from typing import Any

from traceview import contracts
from traceview.compare.model import FORMAT, Comparison


def to_json(comparison: Comparison) -> dict[str, Any]:
    """Plain JSON data; a number that is not finite becomes null."""
    return {"format": FORMAT, **contracts.plain(comparison)}


def schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of what ``to_json`` gives."""
    return contracts.schema_of(Comparison, FORMAT, "traceview comparison")


def write_schema() -> None:
    """Write schema.json anew, after a change of the model."""
    contracts.write_beside(__file__, schema())
