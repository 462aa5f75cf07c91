"""The environment as titled lists of name and value."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

_MAX_DEPTH = 4
_FACTS = {
    "torch_version": "torch", "triton_version": "triton", "cuda_version": "CUDA",
    "driver_version": "driver", "python_version": "Python", "platform": "platform",
    "device_name": "device", "device_count": "devices",
    "device_capability": "compute capability", "cpu_threads": "CPU threads",
    "argv": "command line", "cwd": "working directory", "ranks": "ranks",
    "rank": "rank of the figures",
    "step_kind": "a step begins with", "steps_seen": "steps seen",
}  # fmt: skip
_GROUPS = {
    "settings": "torch settings",
    "variables": "environment variables",
    "variables_of_traceview": "variables that traceview set for this run",
}


def environment_groups(environment: dict[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    """The environment as titled lists of name and value: plain values first, then each group."""
    plain: list[tuple[str, str]] = []
    groups: list[tuple[str, list[tuple[str, str]]]] = []
    for name, value in environment.items():
        if isinstance(value, dict) or _is_table(value):
            if rows := list(_flat("", value, 1)):
                groups.append((_GROUPS.get(str(name), str(name).replace("_", " ")), rows))
        elif value not in (None, []):
            plain.append((_FACTS.get(str(name), str(name)), _said(value)))
    plain.sort(key=_place_in(_FACTS))
    groups.sort(key=_place_in(_GROUPS))
    return [("", plain), *groups] if plain else groups


def _place_in(names: dict[str, str]) -> Callable[[tuple[str, Any]], int]:
    """Sorts (name, …) as ``names`` has them; what is not in it stands last."""
    order = list(names.values())
    return lambda row: order.index(row[0]) if row[0] in order else len(order)


def _is_table(value: object) -> bool:
    return isinstance(value, list | tuple) and any(isinstance(item, dict) for item in value)


def _flat(
    prefix: str,
    value: Any,  # noqa: ANN401 - any JSON value
    depth: int,
) -> Iterable[tuple[str, str]]:
    """Name and value of what is nested; a row with ``name`` and ``value`` is one setting."""
    if isinstance(value, dict) and "name" in value and "value" in value:
        section = f"{value['section']}." if value.get("section") else ""
        yield f"{prefix}{section}{value['name']}", _setting(value)
    elif isinstance(value, dict) and depth < _MAX_DEPTH:
        for key, item in value.items():
            if isinstance(item, dict) or _is_table(item):
                yield from _flat(f"{prefix}{key}.", item, depth + 1)
            elif item is not None:
                yield f"{prefix}{key}", _said(item)
    elif _is_table(value) and depth < _MAX_DEPTH:
        for item in value:
            yield from _flat(prefix, item, depth + 1)
    else:
        yield prefix.rstrip(".") or "value", _said(value)


def _setting(row: dict[str, Any]) -> str:
    default = row.get("default")
    said = _said(row["value"])
    return said if default is None else f"{said} (default {_said(default)})"


def _said(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(_said(item) for item in value)
    return str(value)
