"""What is recorded of a tensor: a digest of its bytes, statistics, and values at some places.

The places depend on the number of elements alone, so that two processes can be compared.
"""

from __future__ import annotations

import ctypes
import hashlib
import math
from collections.abc import Sequence
from typing import Any

VALUES, SUMS = 32, 16


def flattened(torch: Any, value: Any) -> Any:
    """Its real values one after the other, on the host."""
    dense = value.detach()
    dense = dense if dense.layout is torch.strided else dense.to_dense()
    dense = dense.resolve_conj().resolve_neg()
    dense = torch.view_as_real(dense) if dense.is_complex() else dense
    return dense.to("cpu").contiguous().reshape(-1)


def digest(flat: Any) -> str:
    """Of its bytes."""
    size = flat.numel() * flat.element_size()
    if not size:
        return ""
    return hashlib.sha256((ctypes.c_char * size).from_address(flat.data_ptr())).hexdigest()[:32]


def places(elements: int) -> list[int]:
    """Some places in a tensor, the same in every process."""
    return sorted({(n * 2_654_435_769 + elements // 2) % elements for n in range(VALUES)})


def sampled(torch: Any, flat: Any) -> list[float | None]:
    """Its values at those places, all of a few; None where one is not finite."""
    if flat.numel() > VALUES:
        flat = flat[torch.tensor(places(flat.numel()))]
    digits = 17 if flat.dtype is torch.float64 else 9
    return [short(each, digits) for each in flat.double().tolist()]


def statistics(torch: Any, flat: Any) -> dict[str, Any]:
    """What is recorded of its values; None where there is no finite one."""
    finite = flat.isfinite()
    wide = torch.where(finite, flat, torch.zeros_like(flat)).double()
    count, part = int(finite.sum()), flat.numel() // SUMS
    inner = wide[finite] if count < flat.numel() else wide
    sums = wide[: part * SUMS].view(SUMS, -1).sum(1).tolist() if flat.numel() > VALUES else []
    return {
        "values": sampled(torch, flat),
        "sums": [short(each, 12) for each in sums],
        "mean": short(float(inner.mean()), 12) if count else None,
        "rms": short(float(inner.square().mean().sqrt()), 12) if count else None,
        "low": short(float(inner.min()), 12) if count else None,
        "high": short(float(inner.max()), 12) if count else None,
        "nan": int(flat.isnan().sum()),
        "infinite": int(flat.isinf().sum()),
    }


def short(value: float, digits: int = 17) -> float | None:
    """Rounded to a number of digits; None if it is not finite."""
    return float(f"{value:.{digits}g}") if math.isfinite(value) else None


def distance(one: Sequence[Any], other: Sequence[Any] | None) -> float | None:
    """Root mean square of the differences; None where there is nothing to compare."""
    pairs = zip(one, other, strict=False) if other is not None and len(one) == len(other) else ()
    squares = [(a - b) ** 2 for a, b in pairs if a is not None and b is not None]
    return math.sqrt(sum(squares) / len(squares)) if squares else None
