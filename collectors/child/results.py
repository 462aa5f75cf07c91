"""What a call gives and what it writes into, taken apart into named tensors and simple values."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

MOST_OUTPUTS = 64  # of one container
_DEPTH = 6
_SIMPLE = (bool, int, float, str, type(None))


def equal(after: Any, before: Any) -> bool:
    """Whether it holds the same values, NaN among them."""
    if before is None or after.shape != before.shape or after.dtype != before.dtype:
        return False
    return bool(((after == before) | ((after != after) & (before != before))).all())


def outputs(
    value: Any, torch: Any, name: str = "output", depth: int = 0
) -> Iterator[tuple[str, Any]]:
    """(name, tensor or simple value), containers taken apart; other objects by their type."""
    if isinstance(value, torch.Tensor):
        yield name, value.detach()
    elif isinstance(value, _SIMPLE):
        yield name, value
    elif depth < _DEPTH:
        for key, inner in list(_parts(value))[:MOST_OUTPUTS]:
            yield from outputs(inner, torch, name + key, depth + 1)


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        yield from ((f"[{key!r}]"[:40], inner) for key, inner in value.items())
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        yield from ((f".{key}", getattr(value, key)) for key in value._fields)
    elif isinstance(value, (list, tuple)):
        yield from ((f"[{index}]", inner) for index, inner in enumerate(value))
    elif dataclasses.is_dataclass(value):
        names = (field.name for field in dataclasses.fields(value))
        yield from ((f".{name}", getattr(value, name, None)) for name in names)


def written(call: Any, args: Any, kwargs: Any, torch: Any) -> Iterator[tuple[str, Any]]:
    """What a call may write into besides its result: arguments, and buffers of its module."""
    given = (*enumerate(args), *kwargs.items())
    for key, value in given:
        for name, tensor in outputs(value, torch, f"argument {key}"):
            if isinstance(tensor, torch.Tensor):
                yield f"{name} (written)", tensor
    module = getattr(call, "__self__", call)
    if isinstance(module, torch.nn.Module):
        for name, buffer in module.named_buffers():
            yield f"buffer {name} (written)", buffer
