"""The comparison as JSON: the public contract, and its schema (docs/compare-and-check.md)."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import msgspec

from traceview.compare.model import FORMAT, Comparison

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def to_json(comparison: Comparison) -> dict[str, Any]:
    """Plain JSON data; a number that is not finite becomes null."""
    return {"format": FORMAT, **plain_json(comparison)}


def schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of what ``to_json`` gives."""
    return schema_of(Comparison, FORMAT, "traceview comparison")


def write_schema() -> None:
    """Write schema.json anew, after a change of the model."""
    target = Path(__file__).with_name("schema.json")
    target.write_text(json.dumps(schema(), indent=1) + "\n", encoding="utf-8")


def schema_of(model: type, number: int, title: str) -> dict[str, Any]:
    """The schema of a dataclass all of whose keys are written, with ``format`` before them."""
    _, definitions = msgspec.json.schema_components([model], ref_template="#/$defs/{name}")
    top = definitions.pop(model.__name__)
    properties = {"format": {"const": number}, **top["properties"]}
    for definition in definitions.values():
        definition["required"] = sorted(definition["properties"])
    made = {
        "$schema": _DIALECT,
        "title": title,
        "type": "object",
        "properties": properties,
        "required": sorted(properties),
        "$defs": definitions,
    }
    return dict(_plain(made))


def plain_json(value: Any) -> dict[str, Any]:  # noqa: ANN401 - a dataclass
    """``value`` as JSON has it."""
    return dict(_plain(msgspec.to_builtins(value)))


def _plain(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """``value`` with lists for tuples and null for numbers that are not finite."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
