"""Calls whose tensors are padded to one of a few sizes and sliced back, marked or laid out."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from .regions import hide_from_dynamo
from .settings import Setting

#: Where outputs are compared, a size that needs no padding is padded to the next one all the same:
#: above the largest bucket by this much.
_BEYOND = 8
_MARK = "_dynamo_static_input_type"
#: After an argument's name: what is in the container.
WITHIN = "[]"


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
        self._signature = _signature(original)

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any], *, always: bool) -> Any:
        """Call it so; with ``always`` no size is left as it is."""
        from torch.utils._pytree import tree_map

        bound = self._signature.bind(*args, **kwargs)
        grown: set[tuple[int, int, int]] = set()
        for pad in self._pads:
            dim, sizes = pad.value
            tensor = bound.arguments.get(pad.name)
            if not isinstance(tensor, self._torch.Tensor) or tensor.dim() <= dim:
                raise NotPadded(f"a call has no tensor {pad.name} with a dimension {dim}")
            size = tensor.shape[dim]
            fitting = [each for each in sizes if each > size or (each == size and not always)]
            if not fitting and not always:
                raise NotPadded(f"{pad.name} has the size {size}, above {sizes[-1]}")
            to = fitting[0] if fitting else size + _BEYOND
            if to == size:
                continue
            grown.add((dim, size, to))
            more = [0, 0] * (tensor.dim() - dim - 1) + [0, to - size]
            bound.arguments[pad.name] = self._torch.nn.functional.pad(tensor, more)
        result = self._call(*bound.args, **bound.kwargs)
        return tree_map(lambda value: self._sliced(value, grown), result) if grown else result

    def _sliced(self, value: Any, grown: set[tuple[int, int, int]]) -> Any:
        """One output as it would be without padding."""
        if not isinstance(value, self._torch.Tensor):
            return value
        for dim, size, to in grown:
            padded = [index for index, each in enumerate(value.shape) if each == to]
            if padded != [dim]:
                what = "several dimensions" if dim in padded else f"no dimension {dim}"
                raise NotPadded(f"an output has {what} of the padded size: it can't be sliced back")
            value = value.narrow(dim, 0, size)
        return value


def channels_last(values: Any, torch: Any) -> Any:
    """``values`` with every tensor of four dimensions in that memory format."""
    from torch.utils._pytree import tree_map

    def laid_out(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.dim() != 4:
            return value
        return value.contiguous(memory_format=torch.channels_last)

    return tree_map(laid_out, values)


def weights_laid_out(module: Any, torch: Any, stack: ExitStack) -> None:
    """Weights of convolutions in the memory format channels_last, until the end of ``stack``."""
    last = torch.channels_last

    def restride(tensor: Any, stride: tuple[int, ...]) -> None:
        data = tensor.data  # its present values
        tensor.data = torch.empty_strided(data.shape, stride, dtype=data.dtype, device=data.device)
        tensor.data.copy_(data)

    for each in module.parameters():
        if each.dim() == 4 and not each.is_contiguous(memory_format=last):
            stack.callback(restride, each, each.stride())
            each.data = each.data.contiguous(memory_format=last)


def marked(
    torch: Any, call: Callable[..., Any], original: Any, names: Sequence[str]
) -> Callable[..., Any]:
    """``call``, whose tensors of these names stay where they are: a cudagraph reads them there.

    ``memory[]``: all tensors in the container of this name.

    Another tensor is one more recording for torch, no error (``_dynamo.mark_static_address``). What
    is compiled without this is to know nothing of it, so the marks are there during calls only.
    """
    from torch.utils._pytree import tree_leaves

    signature = _signature(original)

    def with_marks(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        with ExitStack() as stack:
            for name in names:
                value = given.get(name.removesuffix(WITHIN))
                leaves = tree_leaves(value) if name.endswith(WITHIN) else [value]
                tensors = [each for each in leaves if isinstance(each, torch.Tensor)]
                if not tensors:
                    raise NotPadded(f"a call has no tensor {name}")
                for tensor in tensors:
                    if not hasattr(tensor, _MARK):
                        torch._dynamo.mark_static_address(tensor)
                        stack.callback(delattr, tensor, _MARK)
            return call(*args, **kwargs)

    hide_from_dynamo(with_marks)
    return with_marks


def _signature(original: Any) -> inspect.Signature:
    try:
        return inspect.signature(getattr(original, "forward", original))
    except (TypeError, ValueError) as error:
        raise NotPadded("its arguments have no names") from error
