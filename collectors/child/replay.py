"""Runs a kept call once more, on copies, as often as asked, always from the same state."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

from .copies import Copies, Originals
from .frames import Frames
from .results import equal, outputs, written
from .seeds import Seeds
from .taken import Mode, Taken, free_bytes

Compile = Callable[[Any], Any]


class NotCompared(Exception):
    """Why nothing can be said."""


class Replay:
    """One kept call. Every run has fresh copies, the same random numbers and the same modes.

    ``draws``: whether eager drew random numbers; ``before``: what it may write into, as it was.
    """

    def __init__(self, torch: Any, taken: Taken, frames: Frames) -> None:
        self._torch = torch
        self._taken = taken
        self._frames = frames
        self._seeds = Seeds(torch)
        self.draws = False
        self.before: dict[str, Any] = {}

    def run(self, compiled: Compile | None = None, *, double: bool = False) -> dict[str, Any]:
        """Outputs by name, and what the call wrote into its arguments and buffers.

        ``compiled`` None: eager; ``double``: all in float64, without autocast.
        """
        taken, torch = self._taken, self._torch
        with ExitStack() as stack:
            self._enter(stack, taken.mode, double=double)
            copies = Copies(torch, self._frames)
            call, args, kwargs = self._copied(copies)
            if double:
                copies.to_double()
                stack.enter_context(_default_double(torch))
            stance = "force_eager" if compiled is None else "default"
            stack.enter_context(torch.compiler.set_stance(stance))
            before = {
                name: tensor.detach().clone() for name, tensor in written(call, args, kwargs, torch)
            }
            if compiled is None and not double:
                self.before = before
            self._seeds.restore()
            result = (call if compiled is None else compiled(call))(*args, **kwargs)
            self.draws = self.draws or (compiled is None and self._seeds.moved())
            found = dict(outputs(result, torch))
            for name, tensor in written(call, args, kwargs, torch):
                if not equal(tensor, before.get(name)):
                    found[name] = tensor
            # A cudagraph's results are overwritten by the next run.
            return {name: _kept(value, torch) for name, value in found.items()}

    def check_room(self) -> None:
        """NotCompared if copies in float64, and in their own precision, would not fit twice."""
        originals = Originals(self._torch, self._frames)
        originals.of_callable(self._taken.call)
        originals.of((self._taken.args, self._taken.kwargs))
        tensors = list(originals.tensors())
        needed = 2 * sum(each.numel() * (8 + each.element_size()) for each in tensors)
        free = free_bytes(self._torch, tensors)
        if needed > free:
            gib = 1 << 30
            why = f"copies would need about {needed / gib:.1f} GiB of memory"
            raise NotCompared(f"{why}, and {free / gib:.1f} GiB are free")

    def _copied(self, copies: Copies) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
        try:
            args, kwargs = copies.of((self._taken.args, self._taken.kwargs))
            call = copies.of_callable(self._taken.call)
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            raise NotCompared(f"it can't be copied ({said})") from error
        module = getattr(call, "__self__", call)
        if isinstance(module, self._torch.nn.Module):
            for each, training in zip(module.modules(), self._taken.training, strict=False):
                each.training = training
        return call, args, kwargs

    def _enter(self, stack: ExitStack, mode: Mode, *, double: bool) -> None:
        torch = self._torch
        if mode.inference:
            stack.enter_context(torch.inference_mode())
        stack.enter_context(torch.set_grad_enabled(mode.grad))
        for device, (enabled, dtype) in mode.autocast.items():
            on = enabled and not double
            stack.enter_context(torch.autocast(device, dtype=dtype, enabled=on))


def _kept(value: Any, torch: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


@contextlib.contextmanager
def _default_double(torch: Any) -> Iterator[None]:
    """What the code makes itself (``torch.zeros``) is float64 too."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
