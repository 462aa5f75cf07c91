"""What every public JSON contract shares: a model as plain data, and its JSON Schema."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

M = TypeVar("M")

_SORTED = msgspec.json.Encoder(order="sorted")
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def plain(model: object) -> dict[str, Any]:
    """A struct as JSON has it: lists for tuples, sorted ones for sets, null where not finite."""
    return dict(_plain(msgspec.to_builtins(model, order="deterministic")))


def text_of(data: dict[str, Any]) -> str:
    """Plain data as JSON text with sorted keys, two spaces deep, in ASCII that can be printed."""
    try:
        text = msgspec.json.format(_SORTED.encode(data), indent=2).decode()
    except UnicodeEncodeError:  # half of a surrogate pair, as in the name of a file
        text = json.dumps(data, sort_keys=True, indent=2, allow_nan=False)
    text = _BEYOND_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], text)
    return text.replace("\x7f", "\\u007f")


def schema_of(
    model: type,
    number: int,
    title: str,
    *,
    also: Mapping[str, Any] | None = None,
    optional: frozenset[str] = frozenset(),
) -> dict[str, Any]:
    """JSON Schema (2020-12) of ``model`` with ``format`` ``number`` before its keys.

    ``also``: keys of the contract that the model hasn't. All keys are required, but for those of
    the definitions ``optional``.
    """
    _, definitions = msgspec.json.schema_components([model], ref_template="#/$defs/{name}")
    top = definitions.pop(model.__name__)
    properties = {"format": {"const": number}, **top["properties"], **(also or {})}
    for name, definition in definitions.items():
        if name not in optional:
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


def of(
    model: type[M], number: int, title: str, module: str
) -> tuple[Callable[[M], dict[str, Any]], Callable[[], dict[str, Any]], Callable[[], None]]:
    """``to_json``, ``schema`` and ``write_schema`` of the contract that ``module`` holds.

    Plain JSON data of a ``model``, where a number that is not finite is null; their JSON Schema;
    and what writes schema.json: call it after a change of the model.
    """

    def schema() -> dict[str, Any]:
        return schema_of(model, number, title)

    return (
        lambda record: {"format": number, **plain(record)},
        schema,
        lambda: write_beside(module, schema()),
    )


def write_beside(module: str, schema: dict[str, Any]) -> None:
    """Write schema.json next to the file ``module``."""
    target = Path(module).with_name("schema.json")
    target.write_text(json.dumps(schema, indent=1) + "\n", encoding="utf-8")


def _plain(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
