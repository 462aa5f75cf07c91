"""The sizes of the tensors that a region was called with, counted where its calls are watched."""

from __future__ import annotations

from typing import Any

from .state import Region

MOST = 64  # combinations of one region that are told apart; later ones are counted together
OTHERS = "others"
_WITHIN = 32  # items of a list, tuple or dict that are looked at


def note_sizes(region: Region, given: tuple[Any, ...], tensor: type) -> None:
    """Count the sizes of the tensors among the arguments, and one level inside of containers."""
    text = ", ".join(_sizes(given, tensor))
    known = region.sizes
    key = text if text in known or len(known) < MOST else OTHERS
    known[key] = known.get(key, 0) + 1


def _sizes(values: Any, tensor: type, *, inner: bool = False) -> list[str]:
    found: list[str] = []
    for value in values:
        if isinstance(value, tensor):
            found.append("x".join(map(str, value.shape)) or "()")  # type: ignore[attr-defined]
        elif not inner and isinstance(value, (list, tuple)):
            found += _sizes(value[:_WITHIN], tensor, inner=True)
        elif not inner and isinstance(value, dict):
            found += _sizes(list(value.values())[:_WITHIN], tensor, inner=True)
    return found
