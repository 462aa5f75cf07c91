"""How far apart two tensors are, next to a reference in float64: numbers, and torch's own verdict.

The criterion is that of ``torch._dynamo.utils.same``: elements are close, or the root mean square
error (RMSE) against float64 is at most 2 or 3 times eager's plus a tenth of the tolerance. Two
things differ. That tenth is of the reference's root mean square where that is above 1. And whole
numbers may differ in a few elements: a rounding decides which of two equal values is the largest.
"""

from __future__ import annotations

import math
from typing import Any

#: Tolerances of torch's own benchmarks for results in these precisions.
TOLERANCES = {"float64": 1e-6, "complex128": 1e-6, "bfloat16": 1e-2, "float16": 1e-2}
TOLERANCE = 1e-4
_LOW = ("bfloat16", "float16")
_FEW = 1000  # elements: below, noise weighs more, and torch allows 3 times eager's error
#: Without a reference in float64 the difference itself is judged, of two errors instead of one.
_ALONE = 3.0
#: Part of the elements of an integer tensor that may differ, on top of three times eager's own.
_WHOLE_SHARE = 0.01


def agreement(
    torch: Any, eager: Any, other: Any, exact: Any, spread: float = 0.0
) -> dict[str, Any]:
    """Keys of the ``output_check`` event for one output; ``exact`` None: there is no reference.

    ``spread`` is how far eager is from itself (RMS), where it is not reproducible.
    """
    if not isinstance(eager, torch.Tensor) or not isinstance(other, torch.Tensor):
        same = bool(type(eager) is type(other) and (eager == other or eager != eager))
        return {"same": same, "why": None if same else _unlike(eager, other, torch)}
    found = {"shape": list(other.shape), "dtype": _dtype(other), "elements": other.numel()}
    if eager.shape != other.shape or eager.dtype != other.dtype or eager.device != other.device:
        return {**found, "same": False, "why": _unlike(eager, other, torch)}
    if not isinstance(exact, torch.Tensor) or exact.shape != eager.shape:
        exact = None
    with torch.no_grad():
        if eager.is_floating_point() or eager.is_complex():
            return {**found, **_floating(torch, eager, other, exact, spread)}
        # whole numbers and truth values: how many elements differ
        differ = int((eager != other).sum())
        allowed = max(1, int(_WHOLE_SHARE * eager.numel())) if eager.numel() else 0
        if exact is not None:
            allowed += 3 * int((eager != exact.to(eager.dtype)).sum())
        return {**found, "differing": differ, "same": differ <= allowed, "why": None}


def _dtype(tensor: Any) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _unlike(eager: Any, other: Any, torch: Any) -> str:
    def words(value: Any) -> str:
        if isinstance(value, torch.Tensor):
            return f"{_dtype(value)}{list(value.shape)} on {value.device}"
        return f"{type(value).__name__} {value!r}"[:80]

    return f"{words(other)}, in eager {words(eager)}"


def _floating(torch: Any, eager: Any, other: Any, exact: Any, spread: float) -> dict[str, Any]:
    dtype = _dtype(eager)
    tolerance = TOLERANCES.get(dtype, TOLERANCE)
    a, b = _wide(torch, eager), _wide(torch, other)
    r = a if exact is None else _wide(torch, exact)
    finite = a.isfinite() & b.isfinite() & r.isfinite()
    odd = max(0, _odd(b, r) - _odd(a, r))  # compiled may be finite where eager overflows
    close = bool(torch.isclose(a, b, tolerance, tolerance, equal_nan=True).all())
    a, b, r = a[finite], b[finite], r[finite]
    eager_rmse, rmse, scale = _rms(a - r), _rms(b - r), _rms(r)
    times = 3.0 if dtype in _LOW or eager.numel() < _FEW else 2.0
    slack = tolerance * max(1.0, scale)
    limit = times * eager_rmse + slack / 10 if exact is not None else _ALONE * slack
    limit += times * spread
    return {
        "max_abs_diff": float((a - b).abs().max()) if a.numel() else 0.0,
        "rms_diff": _rms(a - b),
        "scale": scale,
        "rmse": None if exact is None else rmse,
        "eager_rmse": None if exact is None else eager_rmse,
        "cosine": _cosine(a, b),
        "differing": odd,
        "limit": limit,
        "same": close or (not odd and rmse <= limit),
        "why": None,
    }


def _wide(torch: Any, tensor: Any) -> Any:
    dense = tensor.detach()
    if dense.layout != torch.strided:
        dense = dense.to_dense()
    real = torch.view_as_real(dense.resolve_conj()) if dense.is_complex() else dense
    return real.to(torch.float64)


def _odd(values: Any, reference: Any) -> int:
    """Elements that are NaN or infinite on one side only, or not the same of these."""
    alike = (values == reference) | (values.isnan() & reference.isnan())
    return int((~(values.isfinite() & reference.isfinite()) & ~alike).sum())


def _rms(values: Any) -> float:
    """Root mean square, 0 of nothing; scaled, so that squares don't overflow."""
    largest = float(values.abs().max()) if values.numel() else 0.0
    return largest * math.sqrt(float((values / largest).square().mean())) if largest else 0.0


def _cosine(a: Any, b: Any) -> float | None:
    a, b = (each.flatten() / (_rms(each) or 1.0) for each in (a, b))
    norm = math.sqrt(float((a * a).sum()) * float((b * b).sum())) if a.numel() else 0.0
    return min(1.0, max(-1.0, float((a * b).sum()) / norm)) if norm else None
