"""The gate's result as JSON: the public contract, and its schema (docs/compare-and-check.md)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from traceview.check.model import FORMAT, Checked
from traceview.compare.contract import plain_json, schema_of


def to_json(checked: Checked) -> dict[str, Any]:
    """Plain JSON data; a number that is not finite becomes null."""
    return {"format": FORMAT, **plain_json(checked)}


def schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of what ``to_json`` gives."""
    return schema_of(Checked, FORMAT, "traceview check")


def write_schema() -> None:
    """Write schema.json anew, after a change of the model."""
    target = Path(__file__).with_name("schema.json")
    target.write_text(json.dumps(schema(), indent=1) + "\n", encoding="utf-8")
