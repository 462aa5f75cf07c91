"""What is done around a call: tensors padded up to a size, or laid out, blocks called compiled."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from .settings import Setting

#: Where outputs are compared, a size that needs no padding is padded to the next one all the same:
#: above the largest bucket by this much.
_BEYOND = 8


class NotPadded(Exception):
    """Why a call can't be padded, or its outputs not be sliced back."""


class Padding:
    """What ``pad=NAME:DIM:SIZES`` settings do around one callable; zeros fill what is added.

    ``original`` has the names of its arguments.
    """

    def __init__(
        self, torch: Any, pads: Sequence[Setting], call: Callable[..., Any], original: Any
    ) -> None:
        self._torch, self._pads, self._call = torch, pads, call
        try:
            self._signature = inspect.signature(getattr(original, "forward", original))
        except (TypeError, ValueError) as error:
            raise NotPadded("its arguments have no names") from error

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any], *, always: bool) -> Any:
        """Call it so; with ``always`` no size is left as it is."""

    def laid_out(value: Any) -> Any:
        return value.contiguous(memory_format=torch.channels_last) if value.dim() == 4 else value

    return tree_map_only(torch.Tensor, laid_out, values)
