"""Calls of every compiled callable, kept with copies of their inputs to be run again later."""

from __future__ import annotations

import inspect
import itertools
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from .copies import Originals
from .frames import Frames
from .memory import MEMINFO, proc_bytes
from .state import Control, Gate

#: Callables whose calls are kept; every one keeps the user's module alive until the end.
MOST_CALLABLES = 8
#: Part of the free memory that copies of one call's inputs may take.
MOST_OF_FREE = 0.05
#: Where they are kept without being asked for: bytes of all copies, and of what a callable computes
#: with, on the host and on a device. A larger one is not kept alive.
MOST_BYTES, MOST_DEVICE_BYTES = 256 << 20, 1 << 30
#: Calls of one callable that are kept, each with other sizes or values.
MOST_OTHERS = 8

#: Items of a list, tuple or dict among the arguments that are looked at.
WITHIN = 32

Arguments = tuple[tuple[Any, ...], dict[str, Any]]
_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def names_of(call: Any, count: int) -> list[str]:
    """Names of at least ``count`` positional arguments; the place of one without: ``2``."""
    try:
        parameters = list(inspect.signature(getattr(call, "forward", call)).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names = [each.name for each in parameters if each.kind in _BY_PLACE]
    rest = next((each.name for each in parameters if each.kind is each.VAR_POSITIONAL), None)
    more = range(len(names), count)
    return names + [f"{rest}[{n - len(names)}]" if rest else str(n) for n in more]


def sizes_of(values: Iterable[Any], tensor: type, *, inner: bool = False) -> list[Any]:
    """Sizes of the tensors among ``values``, and one level inside of containers."""
    found: list[Any] = []
    for value in values:
        if isinstance(value, tensor):
            found.append(value.shape)  # type: ignore[attr-defined]
        elif not inner and isinstance(value, (list, tuple)):
            found += sizes_of(value[:WITHIN], tensor, inner=True)
        elif not inner and isinstance(value, dict):
            found += sizes_of([*value.values()][:WITHIN], tensor, inner=True)
    return found


@dataclass(frozen=True)
class Mode:
    """What decides how torch computes: gradients, inference mode, autocast by device."""

    grad: bool
    inference: bool
    autocast: Mapping[str, tuple[bool, Any]]

    @classmethod
    def now(cls, torch: Any) -> Mode:
        """As it is here."""
        autocast = {
            device: (torch.is_autocast_enabled(device), torch.get_autocast_dtype(device))
            for device in ("cpu", "cuda")
        }
        return cls(torch.is_grad_enabled(), torch.is_inference_mode_enabled(), autocast)

    @contextmanager
    def entered(self, torch: Any, *, double: bool = False) -> Iterator[None]:
        """Compute so; with ``double`` without autocast."""
        with ExitStack() as stack:
            if self.inference:
                stack.enter_context(torch.inference_mode())
            stack.enter_context(torch.set_grad_enabled(self.grad))
            stack.enter_context(self.casting(torch, double=double))
            yield

    @contextmanager
    def casting(self, torch: Any, *, double: bool = False) -> Iterator[None]:
        """Autocast as it was."""
        with ExitStack() as stack:
            for device, (enabled, dtype) in self.autocast.items():
                on = enabled and not double
                stack.enter_context(torch.autocast(device, dtype=dtype, enabled=on))
            yield


@dataclass(frozen=True)
class Taken:
    """A call as it was about to be made. ``gate`` gives its gate, None where that is gone.

    ``others``: further calls, where such are kept.
    """

    region_id: int
    gate: Callable[[], Gate | None]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    mode: Mode
    training: tuple[bool, ...]
    cold: bool
    others: Others | None = None

    @property
    def call(self) -> Any:
        """The user's own callable."""
        gate = self.gate()
        return gate and gate.original

    @property
    def how(self) -> Mapping[str, Any]:
        """torch.compile's arguments."""
        gate = self.gate()
        return gate.how if gate else {}


class Taker:
    """Keeps one call of a callable: a steady one, or the first where none came.

    ``sparing``: little memory is taken, and no large callable is kept alive. ``others``: calls with
    other sizes or values are kept, too. ``on_first`` gets the first call of each callable.
    """

    def __init__(
        self,
        torch: Any,
        frames: Frames,
        *,
        sparing: bool,
        others: bool = False,
        on_first: Callable[[Gate, Taken], None] | None = None,
    ) -> None:
        self._torch = torch
        self._frames = frames
        self._on_first = on_first
        self._bytes: dict[int, int] = {}
        self._weights: dict[int, int] = {}  # of callables that are kept alive
        self._on_device: dict[int, int] = {}
        self.sparing = sparing
        self._others = others
        self.taken: dict[int, Taken] = {}
        self.left_out: dict[int, str] = {}

    def look(self, gate: Gate, args: tuple[Any, ...], kwargs: dict[str, Any], phase: str) -> None:
        """A watched call is about to be made."""
        key = gate.region.region_id
        known = self.taken.get(key)
        if known and known.others:
            with suppress(Exception):  # as below
                known.others.look(args, kwargs)
        if key in self.left_out or (known and (phase == "cold" or not known.cold)):
            return
        if known is None and len(self.taken) >= MOST_CALLABLES:
            self.left_out[key] = f"only the first {MOST_CALLABLES} compiled callables are kept"
            return
        try:
            self._take(gate, args, kwargs, phase == "cold")
        except Exception as error:  # noqa: BLE001 - the user's call must be made whatever fails here
            self.left_out[key] = f"its inputs can't be copied ({type(error).__name__}: {error})"

    @property
    def device_bytes(self) -> int:
        """What copies of inputs take of the device's memory."""
        return sum(self._on_device.values())

    def let_go(self, control: Control) -> None:
        """A plan is complete: its calls make room where others may need it."""
        for region in filter(control.is_settled, control.regions if self.sparing else ()):
            held = sum(self._bytes.values()) + sum(self._weights.values())
            crowded = len(self.taken) >= MOST_CALLABLES or held > MOST_BYTES // 2
            if crowded and len(self.taken) > 1:
                for known in (self.taken, self._bytes, self._weights, self._on_device):
                    known.pop(region.region_id, None)

    def _take(self, gate: Gate, args: tuple[Any, ...], kwargs: dict[str, Any], cold: bool) -> None:
        key = gate.region.region_id
        from torch.utils._pytree import tree_leaves

        tensor = self._torch.Tensor
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, tensor)]
        wholes = (t if t.is_inference() or t._base is None else t._base for t in tensors)
        size = bytes_of({id(each): each for each in wholes}.values())
        copies = f"copies of its inputs need {size / 2**20:,.0f} MiB"
        if size > MOST_OF_FREE * free_bytes(self._torch, tensors):
            self.left_out[key] = f"{copies}, more than {MOST_OF_FREE:.0%} of the free memory"
            return
        others = sum(known for other, known in self._bytes.items() if other != key)
        if self.sparing and size + others > (most := most_bytes(tensors)):
            self.left_out[key] = f"{copies}, more than is taken for this ({most >> 20} MiB)"
            return
        mode, call = Mode.now(self._torch), gate.original
        held: Callable[[], Gate | None] = lambda: gate  # noqa: E731 - or a weak reference
        if self.sparing:
            originals = Originals(self._torch, self._frames)
            originals.of_callable(call)
            computed_with = list(originals.tensors())
            self._weights[key] = bytes_of(computed_with)
            if self._weights[key] > most_bytes(computed_with):
                held, self._weights[key] = weakref.ref(gate), 0
        args, kwargs = cloned((args, kwargs), self._torch)
        module = getattr(call, "__self__", call)
        modules = module.modules() if isinstance(module, self._torch.nn.Module) else ()
        training = tuple(each.training for each in modules)
        former = self.taken.get(key)
        more = former.others if former else None
        if more is None and self._others:
            more = Others(self._torch, args, kwargs)
        self.taken[key] = Taken(key, held, args, kwargs, mode, training, cold, more)
        if former is None and self._on_first is not None:
            self._on_first(gate, self.taken[key])
        self._bytes[key] = size
        self._on_device[key] = size if any(each.is_cuda for each in tensors) else 0


class Others:
    """Calls of one callable whose tensors differ in size, or whose numbers or strings in value.

    A trial compiles for the calls that it is given: a count that is another in each call of the
    script must be so in a replay, too, or its value is compiled into the code.
    """

    def __init__(self, torch: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._torch = torch
        self._leaves, self._tree = _flat(args, kwargs)
        self._first = self._latest = self._sizes(self._leaves)
        self._calls: dict[Any, list[Any]] = {self._first: self._leaves}
        self._cycles = False

    def look(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A call is about to be made: its arguments are kept if none like them are."""
        leaves, tree = _flat(args, kwargs)
        if tree != self._tree:
            return
        sizes = self._sizes(leaves)
        if sizes in self._calls:
            self._cycles |= sizes != self._latest
        elif len(self._calls) < MOST_OTHERS and self._has_room(leaves, sizes):
            same = [size == first for size, first in zip(sizes, self._first, strict=True)]
            new = [leaf for leaf, is_old in zip(leaves, same, strict=True) if not is_old]
            more = iter(cloned(new, self._torch))
            both = zip(self._leaves, same, strict=True)
            self._calls[sizes] = [leaf if is_old else next(more) for leaf, is_old in both]
        self._latest = sizes

    def copies(self) -> list[list[Any]]:
        """The calls' arguments, flat, with every tensor cloned."""
        made: list[list[Any]] = cloned(list(self._calls.values()), self._torch)
        return made

    def turns(self, calls: Sequence[Sequence[Any]]) -> Iterator[Arguments]:
        """Arguments of one call after another, again and again; what counts goes on counting."""
        from torch.utils._pytree import tree_unflatten

        counts: dict[int, tuple[int, int]] = {}  # which argument → its last value, the step
        for at, values in () if self._cycles else enumerate(zip(*calls, strict=True)):
            steps = {b - a for a, b in pairwise(values)} if {*map(type, values)} == {int} else set()
            if len(values) > 2 and len(steps) == 1 and 0 not in steps:
                counts[at] = values[-1], steps.pop()
        for turn in itertools.count():
            leaves = list(calls[turn % len(calls)])
            for at, (last, step) in counts.items():
                leaves[at] = last + step * (turn + 1)
            yield tree_unflatten(leaves, self._tree)

    def _sizes(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        """What of each argument may be another in the next call."""
        return tuple(
            (tuple(leaf.shape), leaf.dtype)
            if isinstance(leaf, self._torch.Tensor)
            else (type(leaf), leaf if isinstance(leaf, (bool, int, float, str)) else None)
            for leaf in leaves
        )

    def _has_room(self, leaves: Sequence[Any], sizes: Sequence[Any]) -> bool:
        both = zip(leaves, sizes, self._first, strict=True)
        more = [leaf for leaf, size, first in both if size != first]
        tensors = [leaf for leaf in more if isinstance(leaf, self._torch.Tensor)]
        free = free_bytes(self._torch, tensors)
        return MOST_OTHERS * bytes_of(tensors) < min(most_bytes(tensors), MOST_OF_FREE * free)


def _flat(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], Any]:
    from torch.utils._pytree import tree_flatten

    leaves, tree = tree_flatten((args, kwargs))
    return leaves, tree


def most_bytes(tensors: Iterable[Any]) -> int:
    """Bytes that copies of such tensors may take that are not asked for."""
    return MOST_DEVICE_BYTES if any(each.is_cuda for each in tensors) else MOST_BYTES


def bytes_of(tensors: Iterable[Any]) -> int:
    """Bytes of all their elements."""
    return sum(each.numel() * each.element_size() for each in tensors)


def cloned(values: Any, torch: Any) -> Any:
    """``values`` with every tensor in its containers cloned; one that occurs twice is one again.

    What is a view stays one: guards of symbolic sizes look at what it is a view of.
    """
    from torch.utils._pytree import tree_map

    copies: dict[int, Any] = {}

    def dense(base: Any) -> bool:
        return bool(base.layout is torch.strided and base.is_contiguous())

    def clone(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        if id(value) not in copies:
            base = None if value.is_inference() else value._base
            if base is None or value.requires_grad or base.requires_grad or not dense(base):
                copy = value.detach().clone()
            else:
                offset = value.storage_offset() - base.storage_offset()
                copy = clone(base).as_strided(value.size(), value.stride(), offset)
            if isinstance(value, torch.nn.Parameter):
                copy = torch.nn.Parameter(copy, requires_grad=value.requires_grad)
            marks = {k: v for k, v in vars(value).items() if k.startswith("_dynamo")}
            vars(copy).update(marks)  # mark_dynamic() and its like: guards look at them
            copies[id(value)] = copy.requires_grad_(value.requires_grad)
        return copies[id(value)]

    with torch.no_grad(), torch.autocast("cpu", enabled=False):
        return tree_map(clone, values)


def free_bytes(torch: Any, tensors: Iterable[Any]) -> float:
    """Bytes that can still be taken where these tensors lie: on the device, or of the host's."""
    if any(tensor.is_cuda for tensor in tensors):
        cached = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
        return float(torch.cuda.mem_get_info()[0] + cached)
    return float(proc_bytes(MEMINFO, "MemAvailable") or 0)
