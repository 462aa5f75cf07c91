"""Runs a kept call again on copies, as often as needed, always from the same state."""

from __future__ import annotations

import dataclasses
import math
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from typing import Any

from .copies import Copies, Originals, tensors_in
from .frames import Frames
from .taken import Taken, free_bytes, names_of

MOST_OUTPUTS = 64  # of one container
GRADIENT = "gradient of "  # begins the name of one
LAYOUT = "layout of "  # begins the name of how an output lies in memory
_DEPTH = 6
_SIMPLE = (bool, int, float, str, type(None))
Compile = Callable[[Any], Any]
Named = tuple[str, str, Any]
Results = Mapping[str, Any]
#: Results, and gradients, that are smaller than this part of the largest one are taken as so large:
#: what should be 0 is the roundings of others.
_LEAST_SHARE = 0.1


class NotCompared(Exception):
    """Why the outputs are not compared."""


class Replay:
    """One kept call. Every run has fresh copies, the same random numbers and the same modes.

    ``draws``: whether eager drew random numbers; ``before``: what it may write into, as it was;
    ``scale``: the largest root mean square of what it is given; ``state``: the random generators
    after the last run; ``ungraded``: why there are no gradients. ``scattered``: see ``Copies``.
    ``layouts``: memory is looked at.
    """

    def __init__(self, torch: Any, taken: Taken, frames: Frames, *, layouts: bool = False) -> None:
        self._torch = torch
        self._layouts = layouts
        self._taken = taken
        self._frames = frames
        self._seeds = Seeds(torch)
        self._gradients = Gradients(torch)
        self.draws = False
        self.before: dict[str, Any] = {}
        self.scale = 0.0
        self.state: Any = None
        self.scattered = False
        self.ungraded: str | None = None

    def run(
        self,
        compiled: Compile | None = None,
        *,
        double: bool = False,
        nudge: int | None = None,
        watch: Any = None,
        watch_gradients: Any = None,
    ) -> dict[str, Any]:
        """Outputs by name, gradients, and what the call wrote into what it computes with.

        ``compiled`` None: eager; ``double``: all in float64, without autocast; ``nudge``: with all
        that it computes with a rounding up or down, by this seed; ``watch``: a context that
        sees the call (see ``operators``), ``watch_gradients`` one that sees the backward. Gradients
        are those of the outputs' sum, each element weighted by the same
        random numbers in every run.
        """
        taken, torch = self._taken, self._torch
        with ExitStack() as outer:
            copies = Copies(torch, self._frames)
            stance = "force_eager" if compiled is None else "default"
            with ExitStack() as stack:
                stack.enter_context(taken.mode.entered(torch, double=double))
                call, args, kwargs = self._copied(copies)
                if double:
                    copies.to_double()
                    # what the code makes itself (``torch.zeros``) is float64 too
                    outer.callback(torch.set_default_dtype, torch.get_default_dtype())
                    torch.set_default_dtype(torch.float64)
                outer.enter_context(torch.compiler.set_stance(stance))
                outer.enter_context(copies.importable())
                self.scattered = copies.scattered
                named = list(named_tensors(copies, call, args, kwargs, torch))
                if nudge is not None:
                    nudge_all((tensor for *_, tensor in named), nudge, torch)
                before = {name: tensor.detach().clone() for _, name, tensor in named}
                if compiled is None and not double and nudge is None:
                    self.before = {f"{name} (written)": kept for name, kept in before.items()}
                    self.scale = max((rms_of(each) for each in before.values()), default=0.0)
                if watch is not None:
                    stack.enter_context(watch)
                self._seeds.restore()
                result = (call if compiled is None else compiled(call))(*args, **kwargs)
            moved = self._seeds.moved()
            self.state = self._seeds.now()
            self.draws = self.draws or (compiled is None and moved)
            found = dict(outputs(result, torch))
            if watch is not None:
                watch.keep(found)
            for _, name, tensor in named:
                if not equal(tensor, before[name]):
                    found[f"{name} (written)"] = tensor.detach()
            if self._layouts and not double:
                found |= layouts(found, named, torch)
            with watch_gradients or nullcontext():
                found |= self._graded(result, named, eager=compiled is None)
            # A cudagraph's results are overwritten by the next run.
            return {
                name: value.detach().clone() if isinstance(value, torch.Tensor) else value
                for name, value in found.items()
            }

    @property
    def how(self) -> Mapping[str, Any]:
        """torch.compile's arguments."""
        return self._taken.how

    def put_back(self) -> None:
        """The random generators as they were before the first run."""
        self._seeds.restore()

    def check_room(self) -> None:
        """NotCompared if copies, and those in float64, would not fit three times."""
        originals = Originals(self._torch, self._frames)
        originals.of_callable(self._taken.call)
        originals.of((self._taken.args, self._taken.kwargs))
        tensors = list(originals.tensors())
        needed = 3 * sum(each.numel() * (8 + each.element_size()) for each in tensors)
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

    def _graded(self, result: Any, named: Sequence[Named], *, eager: bool) -> dict[str, Any]:
        """Gradients that the call left in ``.grad``, else those of what it returned, by name."""
        wanted = leaves_of(named)
        left = {name: leaf.grad for name, leaf in wanted.items() if leaf.grad is not None}
        if left:
            return left
        try:
            return self._gradients.of(result, wanted, first=eager)
        except RuntimeError as error:
            if not eager:
                raise
            self.ungraded = str(error).partition("\n")[0][:300]
            return {}


# -- gradients ------------------------------------------------------------------------------------


def leaves_of(named: Sequence[Named]) -> dict[str, Any]:
    """What a gradient can be of, by the gradient's name."""
    return {
        f"{GRADIENT}{f'weight {name}' if kind == 'parameter' else name}": tensor
        for kind, name, tensor in named
        if tensor.requires_grad and tensor.is_leaf
    }


def made_of(result: Any, torch: Any) -> list[Any]:
    """The tensors in ``result`` that a backward can begin at."""
    from torch.utils._pytree import tree_leaves

    found = (leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor))
    return [leaf for leaf in found if leaf.requires_grad and leaf.grad_fn is not None]


class Gradients:
    """Of the sum of what a call returns, each element weighted by the same numbers in every run."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._weights: list[Any] = []

    def of(self, result: Any, leaves: Mapping[str, Any], *, first: bool) -> dict[str, Any]:
        """By name, of what ``result`` depends on. ``first``: the weights are rounded as it is."""
        made = made_of(result, self._torch)
        return self._since(made, self._of(made, first), leaves) if made else {}

    def ends(self, result: Any, *, first: bool) -> list[Any]:
        """The weighted sums themselves: these do not hold what they are sums of."""
        made = made_of(result, self._torch)
        pairs = zip(made, self._of(made, first), strict=True)
        return [(each * weight.conj()).real.sum() for each, weight in pairs]

    def since(self, ends: Sequence[Any], leaves: Mapping[str, Any]) -> dict[str, Any]:
        """By name, of what ``ends`` depend on."""
        return self._since(ends, None, leaves) if ends else {}

    def _since(
        self, ends: Sequence[Any], weights: Any, leaves: Mapping[str, Any]
    ) -> dict[str, Any]:
        if not leaves:
            return {}
        grad = self._torch.autograd.grad
        found = grad(list(ends), list(leaves.values()), weights, allow_unused=True)
        pairs = zip(leaves, found, strict=True)
        return {name: each for name, each in pairs if each is not None}

    def _of(self, made: Sequence[Any], first: bool) -> list[Any]:
        """The weights of these outputs."""
        torch = self._torch
        if [each.shape for each in made] != [each.shape for each in self._weights]:
            generator = torch.Generator().manual_seed(0)
            weights = [torch.randn(m.shape, generator=generator, dtype=torch.float64) for m in made]
            weights = [weight.to(each) for weight, each in zip(weights, made, strict=True)]
            if first and not self._weights:
                self._weights = weights
        else:
            weights = [weight.to(each) for weight, each in zip(self._weights, made, strict=True)]
        return weights


def has_backward(made: Iterable[Any]) -> bool:
    """Whether all compiled code that made these tensors has its backward, too.

    torch compiles a backward when it is called first.
    """
    nodes, seen = [each.grad_fn for each in made], set[Any]()
    for node in nodes:  # it grows
        if node is None or node in seen:
            continue
        seen.add(node)
        code = getattr(type(node), "_forward_cls", None)
        if getattr(code, "compiled_fw", None) and getattr(code, "compiled_bw", None) is None:
            return False
        nodes += [inner for inner, _ in node.next_functions]
    return True


def differences(torch: Any, eager: Results, other: Results) -> dict[str, float]:
    """Root mean square of the difference as part of eager's own, by result; one host read.

    An element that is not finite where eager's is counts as wholly different.
    """
    norm, names, figures = torch.linalg.vector_norm, list[str](), list[Any]()
    for name, one in eager.items():
        two = other.get(name)
        if two is None or two.shape != one.shape or two.dtype != one.dtype:
            continue
        a, b = (torch.view_as_real(t.resolve_conj()) if t.is_complex() else t for t in (one, two))
        a, b = (t.float() if t.element_size() < 4 else t for t in (a, b))
        known = a.isfinite()
        both, zero = known & b.isfinite(), a.new_zeros(())
        kept = norm(torch.where(known, a, zero), dtype=torch.float64)
        apart = norm(torch.where(both, b - a, zero), dtype=torch.float64)
        figures += [kept, apart, (known & ~b.isfinite()).sum(dtype=torch.float64)]
        names.append(name)
    if not names:
        return {}
    read = torch.stack([each.to(figures[0].device) for each in figures]).tolist()
    counts = [max(1, eager[name].numel()) for name in names]
    sizes = [kept / math.sqrt(n) for kept, n in zip(read[::3], counts, strict=True)]
    largest = {False: 0.0, True: 0.0}  # of results, of gradients
    for name, size in zip(names, sizes, strict=True):
        graded = name.startswith(GRADIENT)
        largest[graded] = max(largest[graded], size)
    parts = zip(names, sizes, read[1::3], read[2::3], counts, strict=True)
    return {
        name: math.hypot(apart / math.sqrt(n) / (max(size, least) or 1.0), math.sqrt(odd / n))
        for name, size, apart, odd, n in parts
        for least in (_LEAST_SHARE * largest[name.startswith(GRADIENT)],)
    }


# -- what a call gives and what it writes into, as named tensors and simple values -----------------


def equal(after: Any, before: Any) -> bool:
    """Whether it holds the same values, NaN among them."""
    if before is None or after.shape != before.shape or after.dtype != before.dtype:
        return False
    return bool(((after == before) | ((after != after) & (before != before))).all())


def outputs(
    value: Any, torch: Any, name: str = "output", depth: int = 0
) -> Iterator[tuple[str, Any]]:
    """(name, tensor or simple value), containers taken apart; of an object its own tensors."""
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
        elif depth == 0 and not isinstance(value, type):  # such as the mask of flex attention
            held = getattr(value, "__dict__", {})
            parts = ((f".{k}", v) for k, v in held.items() if isinstance(v, torch.Tensor))
        for key, inner in list(parts)[:MOST_OUTPUTS]:
            yield from outputs(inner, torch, name + key, depth + 1)


def named_tensors(copies: Copies, call: Any, args: Any, kwargs: Any, torch: Any) -> Iterator[Named]:
    """(kind, name, tensor) of arguments and of all that the callable computes with, each once."""
    seen: set[int] = set()
    names = names_of(call, len(args))
    for key, value in (*zip(names, args, strict=False), *kwargs.items()):
        for _, name, tensor in tensors_in(value, torch, f"argument {key}"):
            if id(tensor) not in seen:
                seen.add(id(tensor))
                yield "input", name, tensor
    for kind, name, tensor in copies.held():
        if id(tensor) not in seen:
            yield kind, f"buffer {name}" if kind == "buffer" else name, tensor


def layouts(found: Mapping[str, Any], named: Sequence[Named], torch: Any) -> dict[str, str]:
    """Strides of each output, and what it shares its memory with, in words by name.

    The stride of a dimension with one element is nothing that a program can see.
    """
    owners: dict[int, str] = {}
    for _, name, tensor in named:
        owners.setdefault(_storage(tensor, torch), name)
    words = {}
    for name, value in found.items():
        if not name.startswith("output") or not isinstance(value, torch.Tensor):
            continue
        storage = _storage(value, torch)
        if storage:
            pairs = zip(value.shape, value.stride(), strict=True)
            strides = tuple(step if size > 1 else 1 for size, step in pairs)
            owner = owners.setdefault(storage, name)
            shared = "its own memory" if owner == name else f"memory of {owner}"
            words[f"{LAYOUT}{name}"] = f"strides {strides}, {shared}"
    return words


def _storage(tensor: Any, torch: Any) -> int:
    """Where it lies; 0 of what has no memory of its own that could be looked at."""
    plain = type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.layout is torch.strided
    return int(tensor.untyped_storage().data_ptr()) if plain and tensor.numel() else 0


def nudge_all(tensors: Iterable[Any], seed: int, torch: Any) -> None:
    """Each floating value about a rounding up or down; whole numbers (masks) as they are."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for tensor in tensors:
            if tensor.is_floating_point() and tensor.layout is torch.strided:
                data, low = tensor.data, tensor.element_size() < 4
                part = torch.rand(tensor.shape, generator=generator, dtype=torch.float64) * 2 - 1
                step = part.to(data.device) * torch.finfo(data.dtype).eps * (1 if low else 4)
                moved = (data.double() * (1 + step)).to(data.dtype)
                tensor.data = torch.where(data == data.round(), data, moved)


def rms_of(tensor: Any) -> float:
    """Root mean square of its finite values; 0 of what has none, or is no floating tensor."""
    if not tensor.is_floating_point() or tensor.is_sparse or not tensor.numel():
        return 0.0
    values = tensor.detach().double()
    values = values[values.isfinite()]
    return float(values.square().mean().sqrt()) if values.numel() else 0.0


# -- the state of random generators ----------------------------------------------------------------


class Seeds:
    """The state of every random generator that scripts use, as it was when this was made."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._numpy = sys.modules.get("numpy.random")
        self._states = self.now()

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
        host, devices, *_ = self.now()
        pairs = zip((host, *devices), (self._states[0], *self._states[1]), strict=True)
        return any(not self._torch.equal(now, then) for now, then in pairs)

    def now(self) -> tuple[Any, list[Any], Any, Any]:
        """The state as it is: torch's of the host and of devices, Python's, numpy's."""
        cuda = self._torch.cuda
        devices = cuda.get_rng_state_all() if cuda.is_initialized() else []
        numpy = self._numpy.get_state() if self._numpy is not None else None
        return self._torch.get_rng_state(), devices, random.getstate(), numpy


def same_state(state: Any, other: Any, torch: Any) -> bool:
    """Whether torch's generators are in the same state."""
    pairs = zip((state[0], *state[1]), (other[0], *other[1]), strict=False)
    return all(torch.equal(a, b) for a, b in pairs)
