"""Runs a kept call again on copies, as often as needed, always from the same state."""

from __future__ import annotations

import dataclasses
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

from .copies import Copies, Originals
from .frames import Frames
from .taken import Taken, free_bytes

MOST_OUTPUTS = 64  # of one container
GRADIENT = "gradient of "  # begins the name of one
_DEPTH = 6
_SIMPLE = (bool, int, float, str, type(None))
_PLAIN = (list, tuple, dict)

Compile = Callable[[Any], Any]


class NotCompared(Exception):
    """Why the outputs are not compared."""


class Replay:
    """One kept call. Every run has fresh copies, the same random numbers and the same modes.

    ``draws``: whether eager drew random numbers; ``before``: what it may write into, as it was.
    """

    def __init__(
        self, torch: Any, taken: Taken, frames: Frames, *, gradients: bool = False
    ) -> None:
        self._torch = torch
        self._gradients = gradients
        self._taken = taken
        self._frames = frames
        self._seeds = Seeds(torch)
        self.draws = False
        self.before: dict[str, Any] = {}

    def run(self, compiled: Compile | None = None, *, double: bool = False) -> dict[str, Any]:
        """Outputs by name, gradients, and what the call wrote into its arguments and buffers.

        ``compiled`` None: eager; ``double``: all in float64, without autocast. Gradients are those
        of the outputs' sum, each element weighted by the same random numbers in every run.
        """
        taken, torch = self._taken, self._torch
        with ExitStack() as stack:
            stack.enter_context(taken.mode.entered(torch, double=double))
            copies = Copies(torch, self._frames)
            call, args, kwargs = self._copied(copies)
            if double:
                copies.to_double()
                # what the code makes itself (``torch.zeros``) is float64 too
                stack.callback(torch.set_default_dtype, torch.get_default_dtype())
                torch.set_default_dtype(torch.float64)
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
            if self._gradients:
                found |= gradients(result, call, args, kwargs, torch)
            # A cudagraph's results are overwritten by the next run.
            return {
                name: value.detach().clone() if isinstance(value, torch.Tensor) else value
                for name, value in found.items()
            }

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
            why = f"copies need about {needed / gib:.1f} GiB of memory"
            raise NotCompared(f"{why}, and {free / gib:.1f} GiB is free")

    def _copied(self, copies: Copies) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
        try:
            args, kwargs = copies.of((self._taken.args, self._taken.kwargs))
            call = copies.of_callable(self._taken.call)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            raise NotCompared(f"it can't be copied ({why})") from error
        module = getattr(call, "__self__", call)
        if isinstance(module, self._torch.nn.Module):
            for each, training in zip(module.modules(), self._taken.training, strict=False):
                each.training = training
        return call, args, kwargs


# -- what a call gives and what it writes into, as named tensors and simple values -----------------


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
        parts: Iterable[tuple[str, Any]] = ()
        if isinstance(value, Mapping):
            parts = ((f"[{key!r}]"[:40], inner) for key, inner in value.items())
        elif isinstance(value, tuple) and hasattr(value, "_fields"):
            parts = ((f".{key}", getattr(value, key)) for key in value._fields)
        elif isinstance(value, (list, tuple)):
            parts = ((f"[{index}]", inner) for index, inner in enumerate(value))
        elif dataclasses.is_dataclass(value):
            fields = (field.name for field in dataclasses.fields(value))
            parts = ((f".{key}", getattr(value, key, None)) for key in fields)
        for key, inner in list(parts)[:MOST_OUTPUTS]:
            yield from outputs(inner, torch, name + key, depth + 1)


def gradients(result: Any, call: Any, args: Any, kwargs: Any, torch: Any) -> dict[str, Any]:
    """Of what a call returned, with respect to parameters and arguments, by name."""
    from torch.utils._pytree import tree_leaves

    made = [
        leaf
        for leaf in tree_leaves(result)
        if isinstance(leaf, torch.Tensor) and leaf.requires_grad and leaf.grad_fn is not None
    ]
    if not made:
        return {}
    module = getattr(call, "__self__", call)
    named = list(module.named_parameters()) if isinstance(module, torch.nn.Module) else []
    for key, value in (*enumerate(args), *kwargs.items()):
        named += [
            (name, tensor)
            for name, tensor in _tensors(value, torch, f"argument {key}")
            if tensor.requires_grad and tensor.is_leaf
        ]
    for _, tensor in named:
        tensor.grad = None
    generator = torch.Generator().manual_seed(0)
    weights = [
        torch.randn(each.shape, generator=generator, dtype=torch.float64).to(each) for each in made
    ]
    torch.autograd.backward(made, weights)
    return {f"{GRADIENT}{n}": t.grad.clone() for n, t in named if t.grad is not None}


def _tensors(value: Any, torch: Any, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, (list, tuple)):
        for index, inner in enumerate(value[:MOST_OUTPUTS]):
            yield from _tensors(inner, torch, f"{name}[{index}]")
    elif isinstance(value, Mapping):
        for key, inner in list(value.items())[:MOST_OUTPUTS]:
            yield from _tensors(inner, torch, f"{name}[{key!r}]"[:80])


def written(call: Any, args: Any, kwargs: Any, torch: Any) -> Iterator[tuple[str, Any]]:
    """What a call may write into, apart from its result: arguments, and buffers of its module."""
    for key, value in (*enumerate(args), *kwargs.items()):
        for name, tensor in outputs(value, torch, f"argument {key}"):
            if isinstance(tensor, torch.Tensor):
                yield f"{name} (written)", tensor
    module = getattr(call, "__self__", call)
    if isinstance(module, torch.nn.Module):
        for name, buffer in module.named_buffers():
            yield f"buffer {name} (written)", buffer


# -- the state of random generators ----------------------------------------------------------------


class Seeds:
    """The state of every random generator that scripts use, as it was when this was made."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._numpy = sys.modules.get("numpy.random")
        self._states = self._now()

    def restore(self) -> None:
        """Back to it."""
        host, devices, python, numpy = self._states
        self._torch.set_rng_state(host)
        if devices:
            self._torch.cuda.set_rng_state_all(devices)
        random.setstate(python)
        if self._numpy is not None:
            self._numpy.set_state(numpy)

    def moved(self) -> bool:
        """Whether torch has drawn a random number since."""
        host, devices, *_ = self._now()
        pairs = zip((host, *devices), (self._states[0], *self._states[1]), strict=True)
        return any(not self._torch.equal(now, then) for now, then in pairs)

    def _now(self) -> tuple[Any, list[Any], Any, Any]:
        cuda = self._torch.cuda
        devices = cuda.get_rng_state_all() if cuda.is_initialized() else []
        numpy = self._numpy.get_state() if self._numpy is not None else None
        return self._torch.get_rng_state(), devices, random.getstate(), numpy
