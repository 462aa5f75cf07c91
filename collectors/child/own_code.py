"""Do the script's own compiled code and eager give the same, when it has ended?

One kept call of each callable is made by the code that the script compiled, with its objects as it
left them, and in eager. Compiled code may hold what has changed since; a cudagraph replays the
numbers and addresses of its recording.
"""

from __future__ import annotations

import copy
import itertools
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from .copies import Originals, marked_constant
from .driver import Parts
from .operators import Own, Rounded, is_float
from .pieces import definition
from .repeat import NotReplayed, State, as_then, gate_of, version_of
from .replay import (
    GRADIENT,
    Gradients,
    Named,
    Results,
    differences,
    has_backward,
    leaves_of,
    made_of,
    named_tensors,
    outputs,
)
from .stances import STRICT
from .taken import Taken, Taker, bytes_of, cloned, free_bytes, most_bytes

CHECK = "checking results at the script's end"
CHECK_S = 10.0  # of all callables
SLOW_CALL_S = 2.0
#: Part of the values that results may be apart before it is asked what roundings make.
_APART = 1e-3
_TREES = "torch._inductor.cudagraph_trees"
#: Of steps that begin here; torch counts those that a script marks down from 0.
_MARKS = itertools.count(-(10**9), -1)


def check_results(parts: Parts, taker: Taker, most_s: float) -> None:
    """One ``end_check`` event a callable: do its compiled code and eager give the same now?"""
    until = time.monotonic() + most_s
    for region in parts.control.regions:
        if not region.first_called:
            continue
        began, keys = time.monotonic(), dict[str, Any]()
        sizes: list[int] = []
        try:
            taken = taker.taken.get(region.region_id)
            if taken is None:
                raise NotReplayed(taker.left_out.get(region.region_id, "no call of it was kept"))
            if began > until:
                raise NotReplayed("the time for this was over")
            keys = _Check(parts, taken, sizes).carry_out(until - began)
        except NotReplayed as why:
            keys = {"why": str(why)}
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's code, run again
            text = f"{type(error).__name__}: {error}".partition("\n")[0][:300]
            again = STRICT in text  # torch names the stance
            keys = {"why": "it would be compiled again" if again else text}
        keys = {"compared": False, "why": None, **keys, "result_bytes": sizes or None}
        keys["seconds"] = time.monotonic() - began
        parts.recorder.write("end_check", region_id=region.region_id, **keys)


class _Check:
    """One callable, with the script's own objects: what a call changes is put back after it.

    ``sizes`` gets the bytes of each item of a tuple or list that it gives back.
    """

    def __init__(self, parts: Parts, taken: Taken, sizes: list[int]) -> None:
        torch = parts.torch
        self._sizes = sizes
        self._parts, self._taken, self._gate = parts, taken, gate_of(taken)
        self._found = Originals(torch, parts.frames)
        self._found.of_callable(self._gate.original)
        tensors = list(self._found.tensors())
        given = Originals(torch, parts.frames)
        given.of((taken.args, taken.kwargs))
        self._owners = [*self._found.objects(), *given.objects()]
        self._leaves = [each for each in tensors if each.is_leaf and each.requires_grad]
        self._tensors = [*tensors, *(t.grad for t in self._leaves if t.grad is not None)]
        self._gradients: Gradients | None = Gradients(torch)
        tensors = [*self._tensors, *given.tensors()]
        size = bytes_of(tensors)
        if size > 2 * most_bytes(tensors) or 4 * size > free_bytes(torch, tensors):
            raise NotReplayed(
                f"what it computes with has {size >> 20:,} MiB, too much to be copied"
            )

    def carry_out(self, most_s: float) -> dict[str, Any]:
        """Everything; the keys of the ``end_check`` event."""
        parts, torch, taken = self._parts, self._parts.torch, self._taken
        with ExitStack() as stack:
            then = as_then(torch, self._gate, taken, most_s + SLOW_CALL_S)
            self._seeds = stack.enter_context(then)
            stack.enter_context(parts.stances.without_recompiles())
            if parts.stances.in_force != STRICT:
                raise NotReplayed("compiling can't be kept off: the script has set a stance")
            self._state = State(torch, self._tensors)
            self._objects = _Objects(self._owners, self._leaves)
            stack.callback(self._put_back)
            return self._compare()

    def _compare(self) -> dict[str, Any]:
        torch, began = self._parts.torch, time.monotonic()
        hooks, masks = self._parts.hooks, self._parts.masks
        with _no_optimizer(), hooks.looking(self._gate, "eager"), masks.looking():
            eager = self._run("eager")
        if self._seeds.moved():
            raise NotReplayed("it draws random numbers, and compiled code draws others")
        if not eager:
            raise NotReplayed("it gives no floating-point tensor")
        differences(torch, eager, eager)  # a device is waited for
        if (took_s := time.monotonic() - began) > SLOW_CALL_S:
            raise NotReplayed(f"a call in eager takes {took_s:.1f} s")
        with hooks.looking(self._gate, "compiled"):
            compiled = self._run("compiled", written=eager)
        apart = differences(torch, eager, compiled)
        if not apart:
            raise NotReplayed("its results have other shapes compiled and in eager")
        noise, low, function, place = dict[str, float](), None, None, None
        unrecorded, own = dict[str, float](), Own(torch)
        if max(apart.values()) > _APART:
            # in this order, since a call may be another one every second time
            again = differences(torch, eager, self._run("compiled", eager))
            apart = {name: min(each, again.get(name, 0.0)) for name, each in apart.items()}
            rounded = Rounded(torch)
            noise = differences(torch, eager, self._run("eager", eager, rounded))
            if rounded.sorts:
                raise NotReplayed(
                    "results differ, and may depend on which of equal values is taken"
                )
            low = rounded.low
            if _TREES in sys.modules:
                with _without_cudagraphs(own) as runs:
                    run = self._run("compiled", eager)
                unrecorded = differences(torch, eager, run) if runs else {}
            function = marked_constant(self._gate.original, self._owners, self._parts.frames)
            reads = [each for each in own.functions.values() if each is not None]
            place = definition(function or (reads[0] if len(reads) == 1 else None))
            self._parts.sources.keep(place and place[0])
        off = {name: part / (noise.get(name, 0.0) + _APART) for name, part in apart.items()}
        # A wrong output has wrong gradients.
        worst = max(off, key=lambda name: (off[name] > 1.0 and GRADIENT not in name, off[name]))
        return {
            "compared": True,
            "results": len(apart),
            "name": worst,
            "dtype": str(eager[worst].dtype).removeprefix("torch."),
            "relative_error": apart[worst],
            "noise": noise.get(worst),
            "low_precision": low,
            "without_cudagraph": unrecorded.get(worst),
            "operators": list(own.functions),
            "constant": function and function.__name__,
            "file": place and place[0],
            "line": place and place[1],
        }

    def _run(self, stance: str, written: Results | None = None, watch: Any = None) -> Results:
        """Floating-point results by name, and what the call wrote, or did where ``written`` is of.

        From the same state and random numbers; what it changes is put back.
        """
        torch, taken, gate = self._parts.torch, self._taken, self._gate
        self._parts.stances.take(stance)
        self._seeds.restore()
        with ExitStack() as stack:
            stack.enter_context(_beginning())
            stack.enter_context(taken.mode.entered(torch))
            args, kwargs = cloned((taken.args, taken.kwargs), torch)
            named = list(named_tensors(self._found, gate.original, args, kwargs, torch))
            before = [version_of(tensor) for *_, tensor in named]
            watch = watch or ExitStack()
            with watch:
                result = gate.target(*args, **kwargs)
                ends = self._ends(result, stance)
            kept = {name: _copied(each, torch) for name, each in outputs(result, torch)}
            if isinstance(result, (tuple, list)) and not self._sizes:
                for each in result:
                    made = (value for _, value in outputs(each, torch))
                    self._sizes.append(bytes_of(t for t in made if isinstance(t, torch.Tensor)))
            # As in a script: a cudagraph of the backward was recorded when this was gone.
            del result
            with watch:
                found = self._graded(ends, named)
        found |= self._objects.rebound(torch)
        for (_, name, tensor), version in zip(named, before, strict=True):
            key = f"{name} (written)"
            if key in (written or ()) or version_of(tensor) != version:
                found[key] = tensor
        kept |= {name: _copied(each, torch) for name, each in found.items()}
        self._put_back()
        return {name: each for name, each in kept.items() if each is not None}

    def _ends(self, result: Any, stance: str) -> list[Any]:
        """Where the backward of this result begins; nowhere if none of it was compiled."""
        if self._gradients is None or not has_backward(made_of(result, self._parts.torch)):
            self._gradients = None
            return []
        return self._gradients.ends(result, first=stance == "eager")

    def _graded(self, ends: Sequence[Any], named: Sequence[Named]) -> dict[str, Any]:
        """Gradients by name, as long as none of these runs failed in its backward."""
        if self._gradients is None:
            return {}
        try:
            return self._gradients.since(ends, leaves_of(named))
        except Exception:  # noqa: BLE001 - what only a backward meets, the outputs are there
            self._gradients = None
            return {}

    def _put_back(self) -> None:
        self._objects.put_back()
        self._state.restore()


def _copied(value: Any, torch: Any) -> Any:
    """A copy of a floating-point result; None of any other."""
    if isinstance(value, float):
        return torch.tensor(value, dtype=torch.float64)
    return value.detach().clone() if is_float(value, torch) else None


class _Objects:
    """What attributes are, and items of containers in them; and ``.grad`` of tensors."""

    def __init__(self, objects: Iterable[Any], leaves: Iterable[Any]) -> None:
        self._grads = [(leaf, leaf.grad) for leaf in leaves]
        owners = [vars(each) for each in objects]
        inner = [value for names in owners for value in names.values()]
        held = [*owners, *(value for value in inner if type(value) in (list, dict, set))]
        self._kept = [(each, copy.copy(each)) for each in held]

    def rebound(self, torch: Any) -> dict[str, Any]:
        """Tensors that an attribute had not before, by name."""
        return {
            f"attribute {name}": value
            for now, then in self._kept
            if isinstance(now, dict)
            for name, value in now.items()
            if isinstance(value, torch.Tensor) and then.get(name) is not value
        }

    def put_back(self) -> None:
        """As it was; what is the same is not touched."""
        for leaf, grad in self._grads:
            if leaf.grad is not grad:
                leaf.grad = grad
        for now, then in self._kept:
            if isinstance(now, dict):
                for name in [name for name in now if name not in then]:
                    del now[name]
                changed = {n: v for n, v in then.items() if n not in now or now[n] is not v}
                now.update(changed)
            elif isinstance(now, list) and list(map(id, now)) != list(map(id, then)):
                now[:] = then
            elif isinstance(now, set) and now != then:
                now.clear()
                now.update(then)


@contextmanager
def _beginning() -> Iterator[None]:
    """Cudagraphs begin with this call: a step of its own, like no other's.

    They would be recorded for a call after the script's last one, or after the one before.
    """
    if not (trees := sys.modules.get(_TREES)):
        yield
        return
    before = trees.MarkStepBox.mark_step_counter
    trees.MarkStepBox.mark_step_counter = next(_MARKS)
    try:
        yield
    finally:
        trees.MarkStepBox.mark_step_counter = before


@contextmanager
def _without_cudagraphs(watch: Own) -> Iterator[list[Any]]:
    """What cudagraphs would replay runs, watched; the list has what ran so."""
    ran = list[Any]()

    def run(manager: Any, inputs: list[Any], function: Any) -> Any:
        ran.append(function)
        with watch:
            return manager.ids_to_funcs[function].model(inputs)

    manager: Any = sys.modules[_TREES].CUDAGraphTreeManager
    replaying = manager._run
    manager._run = run
    try:
        yield ran
    finally:
        manager._run = replaying


@contextmanager
def _no_optimizer() -> Iterator[None]:
    """A call that steps an optimizer is left: nothing here could put back what that changes."""
    from torch.optim.optimizer import register_optimizer_step_pre_hook

    def stepping(*_: Any) -> None:
        raise NotReplayed("it steps an optimizer, which would change the weights")

    handle = register_optimizer_step_pre_hook(stepping)
    try:
        yield
    finally:
        handle.remove()
