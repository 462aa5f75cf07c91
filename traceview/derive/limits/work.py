"""What one execution has to do at least: bytes to move, floating-point operations to compute."""

from __future__ import annotations

from math import prod

import msgspec

from traceview.torchtext.dtypes import size_of

#: ``bytes`` is what has to be moved; where a size is not known, a bound of it.
EXACT, AT_LEAST, AT_MOST = "exact", "at_least", "at_most"


class Work(msgspec.Struct, frozen=True):
    """Least ``bytes`` (each tensor once) and ``flops`` of one execution; None: not known.

    ``at_least``: an input or output whose size is not known is left out. ``at_most``: places are
    read through an index, and what is read twice moves once.
    """

    bytes: int | None = None
    bytes_kind: str | None = None
    flops: int | None = None
    dtype: str | None = None


def elements(dims: tuple[int, ...], dtype: str) -> int:
    """Bytes of a dense tensor."""
    return prod(dims) * size_of(dtype)
