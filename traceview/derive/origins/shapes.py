"""Shapes of a library's work, so that calls of one line that do different work are told apart."""

from __future__ import annotations

import msgspec

_DIMS = msgspec.json.Decoder(list[object])
#: The first operand of these is what is added to the product.
_ADDED = ("add", "badd")


def library_shape(kind: str, operator: str, dims: str | None) -> str | None:
    """What ``operator`` works on, by its ``Input Dims``; None where they do not say.

    A product's is ``MxN, K`` whatever side is transposed, so M is the smaller; batches come first.
    Of convolutions and attention: the operands' sizes.
    """
    try:
        listed = _DIMS.decode(dims) if dims else []
    except (msgspec.DecodeError, UnicodeError):
        return None
    if operator.rpartition("::")[2].startswith(_ADDED):
        listed = listed[1:]
    sizes = [
        size for each in listed if isinstance(each, list) and (size := _sizes(each)) is not None
    ]
    sizes = [size for size in sizes if len(size) > 1]
    if kind != "gemm":
        return ", ".join("x".join(map(str, size)) for size in sizes[:3]) or None
    if len(sizes) < 2 or sizes[0][-1] != sizes[1][-2]:
        return None
    outer = sorted((sizes[0][-2], sizes[1][-1]))
    return "x".join(map(str, (*sizes[0][:-2], *outer))) + f", {sizes[0][-1]}"


def _sizes(listed: list[object]) -> list[int] | None:
    sizes = [size for size in listed if isinstance(size, int)]
    return sizes if len(sizes) == len(listed) else None
