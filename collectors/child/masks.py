"""Masks of attention: do they hide what comes later and nothing else, as ``is_causal`` does?

A trace has their sizes alone. Those that a call passes are looked at where the call is made again
at the script's end (`looking`). Of a size that no such call has, all masks are that are alive.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

_HIDES = -1e3  # added to a score, it leaves nothing of the weight
_MASK = 3  # after queries, keys and values

#: Rows, columns and dtype.
Kind = tuple[int, int, str]


class Masks:
    """What masks of one process are."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._passed: dict[Kind, bool] = {}

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Look at the masks of all attention in eager code within."""
        from torch.overrides import TorchFunctionMode

        attention, look = self._torch.nn.functional.scaled_dot_product_attention, self._look

        class Look(TorchFunctionMode):  # type: ignore[misc]
            def __torch_function__(
                self,
                func: Any,
                types: Any,
                args: Sequence[Any] = (),
                kwargs: Mapping[str, Any] | None = None,
            ) -> Any:
                named = kwargs or {}
                if func is attention:
                    mask = args[_MASK] if len(args) > _MASK else named.get("attn_mask")
                    look(mask)
                return func(*args, **named)

        with Look():
            yield

    def _look(self, mask: Any) -> None:
        torch = self._torch
        if type(mask) in (torch.Tensor, torch.nn.Parameter) and mask.dim() > 1:
            rows, columns = mask.shape[-2:]
            kind = rows, columns, str(mask.dtype).removeprefix("torch.")
            if self._passed.get(kind, True):
                self._passed[kind] = rows == columns and _is_causal(torch, mask)

    def are_causal(self, rows: int, columns: int, dtype: str) -> bool:
        """Whether all masks of this size and dtype are, and there is one."""
        known = self._passed.get((rows, columns, dtype))
        if known is not None or rows != columns or rows < 2:
            return bool(known)
        torch = self._torch
        kinds = torch.Tensor, torch.nn.Parameter
        try:
            alive = [
                each
                for each in gc.get_objects()
                if type(each) in kinds and each.shape[-2:] == (rows, columns)
                if each.dtype is getattr(torch, dtype) and each.device.type in ("cpu", "cuda")
                # Of floats, weights and scores may have that size: masks have nothing above 0.
                if dtype == "bool" or not bool((each > 0).any())
            ]
            return bool(alive) and all(_is_causal(torch, each) for each in alive)
        except RuntimeError:  # a tensor without strides, or one of a transform that has ended
            return False


def _is_causal(torch: Any, mask: Any) -> bool:
    """Of floats, what is neither 0 nor hides is a bias, which ``is_causal`` has not."""
    if mask.dtype is not torch.bool:
        if bool(((mask > 0) | ((mask < 0) & (mask > _HIDES))).any()):
            return False
        mask = mask == 0
    ones = torch.ones(mask.shape[-2:], dtype=torch.bool, device=mask.device)
    return bool((mask == ones.tril()).all())
