"""Calls of the script, made again when it has ended, on copies of their inputs.

One of each callable is made by the script's compiled code and in eager, to see that both give the
same. Where the script ended before its speedup was known, measuring goes on with these calls.

The plan is carried out as in the script, by a driver of its own, on the callables, weights and
compiled code of the script. What a replayed call prints is not shown, what it writes into its
arguments and its module's buffers is put back, and so are modes and random numbers. A call that
would have to be compiled again is not the script's any more, and is not replayed.
"""

from __future__ import annotations

import copy
import itertools
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import Any

from .config import Config
from .copies import Originals, marked_constant
from .driver import Driver, Parts
from .gate import counting
from .listener import Calls
from .logs import nothing_shown
from .operators import Own, Rounded, is_float
from .pieces import definition
from .recorder import Recorder
from .replay import (
    GRADIENT,
    Gradients,
    Named,
    Results,
    Seeds,
    differences,
    has_backward,
    leaves_of,
    made_of,
    named_tensors,
    outputs,
)
from .stances import STRICT
from .state import Control, Gate, Region
from .taken import Arguments, Taken, Taker, cloned, free_bytes, most_bytes

WHAT = "replaying calls after the script's end"
BUDGET_S = 5.0  # of the callable whose calls are the steps
OTHERS_S = 1.5  # of each other one
SLOW = 3  # times as long, where calls are slow, until there are
FEWEST_PAIRS = 3
HANGS_S = 30.0  # a call that takes this much longer waits for something that will not come


class NotReplayed(Exception):
    """Why calls are not replayed."""


def replay_calls(parts: Parts, config: Config, script: Driver, taker: Taker, most_s: float) -> None:
    """Measure the kept calls in ``most_s`` at most; a note says why the steps' are not."""
    until = time.monotonic() + most_s
    script.restart()
    parts.window.replayed = parts.timer.replayed = True
    anchor, regions = script.anchor.region_id, unmeasured(parts.control)
    if script.anchor.over:  # that one is measured
        anchor = max(regions, key=lambda region: region.outermost).region_id
    for region in sorted(regions, key=lambda region: region.region_id != anchor):
        is_anchor = region.region_id == anchor
        taken = taker.taken.get(region.region_id)
        budget_s = BUDGET_S if is_anchor else OTHERS_S
        left_s = min(most_s if config.mode == "trials" else budget_s, until - time.monotonic())
        if config.mode == "trials" and not is_anchor:
            continue
        try:
            if taken is None:
                why = "none of its calls was watched"
                raise NotReplayed(taker.left_out.get(region.region_id, why))
            if left_s > 0:
                _Replayed(parts, config, script, taken, profile=is_anchor).measure(left_s)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's code, run again
            if is_anchor:
                known = isinstance(error, NotReplayed)
                parts.recorder.note(WHAT, str(error) if known else error)


def unmeasured(control: Control) -> list[Region]:
    """Called, and of no steps that a complete plan has measured."""
    regions = control.regions
    return [each for each in regions if each.first_called and not control.is_settled(each)]


class _Replayed:
    """One callable."""

    def __init__(
        self, parts: Parts, config: Config, script: Driver, taken: Taken, *, profile: bool
    ) -> None:
        self._parts, self._taken, self._gate = parts, taken, _gate_of(taken)
        parts.window.of(taken.region_id, "call")
        profile = profile and config.profile and not parts.window.has_both
        profile = profile and not script.never_quiet  # its steps do what a replayed call does not
        self._driver = Driver(
            replace(config, run_to_end=True, stop_after_steps=None, profile=profile),
            replace(parts, recorder=_Phases(parts.recorder)),
            lambda: None,
        )
        self._driver.go_on_from(script)
        script.go_on_from(self._driver)

    def measure(self, seconds: float) -> None:
        """Replay until the plan is complete, or for so long."""
        parts, taken, gate = self._parts, self._taken, self._gate
        torch, control = parts.torch, parts.control
        with ExitStack() as stack:
            stack.enter_context(_as_then(torch, gate, taken, SLOW * seconds + HANGS_S))
            if parts.trials.left:  # the workers that compile have ended with the script
                stack.enter_context(torch._inductor.config.patch(compile_threads=1))
            else:
                stack.enter_context(parts.stances.without_recompiles())
            stack.enter_context(_counting_on(parts, gate))
            stack.callback(self._driver.restart)
            stack.enter_context(taken.mode.entered(torch))
            given: Any
            turns: Iterator[Arguments]
            if taken.others:
                given = taken.others.copies()
                turns = taken.others.turns(given)
            else:
                given = cloned((taken.args, taken.kwargs), torch)
                turns = itertools.repeat(given)
            state = _State(torch, _written_to(parts, gate, given))
            stack.callback(state.restore)
            call: Any = counting(gate, control, Calls(parts, self._driver))
            if any(enabled for enabled, _ in taken.mode.autocast.values()):
                call = _casting_each(call, taken, torch)
            timer, driver, began = parts.timer, self._driver, time.monotonic()
            few = len(timer.pairs) + FEWEST_PAIRS
            result = None
            while not (driver.complete or driver.plans_done):
                spent = time.monotonic() - began
                if spent > seconds and (len(timer.pairs) >= few or spent > SLOW * seconds):
                    break
                if not (timer.is_open or parts.window.open):
                    state.restore()
                args, kwargs = next(turns)
                result = call(*args, **kwargs)
            del result
            timer.settle(wait=True)
            driver.conclude_trial()


class _Phases(Recorder):
    """Passes the phases on: other events would count replayed steps as the script's own."""

    def __init__(self, recorder: Recorder) -> None:
        self._to = recorder

    def write(self, event: str, **keys: object) -> None:
        if event == "phase":
            self._to.write(event, **keys, replayed=True)

    def row(self, event: str, values: list[Any], **keys: object) -> None:
        pass

    def flush(self, *, due: bool = False) -> None:
        pass

    def note(self, what: str, error: BaseException | str) -> None:
        self._to.note(what, error)


class _State:
    """Tensors that calls may write into, with their values."""

    def __init__(self, torch: Any, tensors: Iterable[Any]) -> None:
        self._torch = torch
        self._kept = [(tensor, tensor.detach().clone()) for tensor in tensors]
        self._seen = [_version(tensor) for tensor, _ in self._kept]

    def restore(self) -> None:
        """Put back what was written; quick where nothing was."""
        with self._torch.no_grad():
            for index, (tensor, value) in enumerate(self._kept):
                if _version(tensor) != self._seen[index]:
                    tensor.copy_(value)
                    self._seen[index] = _version(tensor)


def _version(tensor: Any) -> int:
    """Inference tensors count none: then every call counts as one that has written."""
    return time.perf_counter_ns() if tensor.is_inference() else int(tensor._version)


def _gate_of(taken: Taken) -> Gate:
    gate = taken.gate()
    if gate is None:
        raise NotReplayed("its weights are too large to be kept, and the script has freed them")
    return gate


def _written_to(parts: Parts, gate: Gate, given: Any) -> list[Any]:
    """The arguments, and all that the callable computes with but its parameters."""
    found = Originals(parts.torch, parts.frames)
    found.of_callable(gate.original)
    found.of(given)
    tensors = [t for t in found.tensors() if not isinstance(t, parts.torch.nn.Parameter)]
    if sum(each.numel() * each.element_size() for each in tensors) > 2 * most_bytes(tensors):
        raise NotReplayed("what its calls may write into is too large to be copied")
    return tensors


def _casting_each(call: Callable[..., Any], taken: Taken, torch: Any) -> Callable[..., Any]:
    """Autocast is entered for each call: while it lasts, weights are cast once only."""

    def cast(*args: Any, **kwargs: Any) -> Any:
        with taken.mode.casting(torch):
            return call(*args, **kwargs)

    return cast


@contextmanager
def _as_then(torch: Any, gate: Gate, taken: Taken, most_s: float) -> Iterator[Seeds]:
    """Silent, in train or eval mode as in the call, for so long; random numbers go back."""
    module = getattr(gate.original, "__self__", gate.original)
    modules = list(module.modules()) if isinstance(module, torch.nn.Module) else []
    now, seeds = [each.training for each in modules], Seeds(torch)
    with nothing_shown(), _returning_within(most_s):
        try:
            for each, training in zip(modules, taken.training, strict=False):
                each.training = training
            yield seeds
        finally:
            for each, training in zip(modules, now, strict=True):
                each.training = training
            seeds.restore()


@contextmanager
def _counting_on(parts: Parts, gate: Gate) -> Iterator[None]:
    """Count calls and compiles again, on this thread; write no compiles."""
    control = parts.control
    control.off, control.depth, control.thread = False, 0, threading.get_ident()
    control.only = None
    control.inside.clear()
    parts.compiles.silent = True
    gate.region.grant(0)
    try:
        yield
    finally:
        control.switch_off()
        parts.compiles.silent = False


@contextmanager
def _returning_within(seconds: float) -> Iterator[None]:
    """Raise in a call that waits for ever, where the script does not use the alarm itself."""

    def late(_number: int, _frame: Any) -> None:
        raise NotReplayed("a call did not return")

    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGALRM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        with suppress(ValueError):
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)


# -- a call by the script's compiled code, and in eager --------------------------------------------

CHECK = "checking results at the script's end"
CHECK_S = 10.0  # of all callables
SLOW_CALL_S = 2.0
#: Part of the values that results may be apart before it is asked what roundings make.
_APART = 1e-3


def check_results(parts: Parts, taker: Taker, most_s: float) -> None:
    """One ``end_check`` event a callable: do its compiled code and eager give the same now?"""
    until = time.monotonic() + most_s
    for region in parts.control.regions:
        if not region.first_called:
            continue
        began, keys = time.monotonic(), dict[str, Any]()
        try:
            taken = taker.taken.get(region.region_id)
            if taken is None:
                raise NotReplayed(taker.left_out.get(region.region_id, "no call of it was kept"))
            if began > until:
                raise NotReplayed("the time for this was over")
            keys = _Check(parts, taken).carry_out(until - began)
        except NotReplayed as why:
            keys = {"why": str(why)}
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's code, run again
            text = f"{type(error).__name__}: {error}".partition("\n")[0][:300]
            again = STRICT in text  # torch names the stance
            keys = {"why": "it would be compiled again" if again else text}
        keys = {"compared": False, "why": None, **keys, "seconds": time.monotonic() - began}
        parts.recorder.write("end_check", region_id=region.region_id, **keys)


class _Check:
    """One callable, with the script's own objects: what a call changes is put back after it."""

    def __init__(self, parts: Parts, taken: Taken) -> None:
        torch = parts.torch
        self._parts, self._taken, self._gate = parts, taken, _gate_of(taken)
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
        size = sum(each.numel() * each.element_size() for each in tensors)
        if size > 2 * most_bytes(tensors) or 4 * size > free_bytes(torch, tensors):
            raise NotReplayed(
                f"what it computes with has {size >> 20:,} MiB, too much to be copied"
            )

    def carry_out(self, most_s: float) -> dict[str, Any]:
        """Everything; the keys of the ``end_check`` event."""
        parts, torch, taken = self._parts, self._parts.torch, self._taken
        with ExitStack() as stack:
            as_then = _as_then(torch, self._gate, taken, most_s + SLOW_CALL_S)
            self._seeds = stack.enter_context(as_then)
            stack.enter_context(parts.stances.without_recompiles())
            if parts.stances.in_force != STRICT:
                raise NotReplayed("compiling can't be kept off: the script has set a stance")
            self._state = _State(torch, self._tensors)
            self._objects = _Objects(self._owners, self._leaves)
            stack.callback(self._put_back)
            return self._compare()

    def _compare(self) -> dict[str, Any]:
        torch, began = self._parts.torch, time.monotonic()
        with _no_optimizer():
            eager = self._run("eager")
        if self._seeds.moved():
            raise NotReplayed("it draws random numbers, and compiled code draws others")
        if not eager:
            raise NotReplayed("it gives no floating-point tensor")
        differences(torch, eager, eager)  # a device is waited for
        if (took_s := time.monotonic() - began) > SLOW_CALL_S:
            raise NotReplayed(f"a call in eager takes {took_s:.1f} s")
        apart = differences(torch, eager, self._run("compiled", written=eager))
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
            stack.enter_context(taken.mode.entered(torch))
            args, kwargs = cloned((taken.args, taken.kwargs), torch)
            named = list(named_tensors(self._found, gate.original, args, kwargs, torch))
            before = [_version(tensor) for *_, tensor in named]
            with watch or ExitStack():
                result = gate.target(*args, **kwargs)
                slopes = self._graded(result, named, stance)
        found = slopes | dict(outputs(result, torch)) | self._objects.rebound(torch)
        for (_, name, tensor), version in zip(named, before, strict=True):
            key = f"{name} (written)"
            if key in (written or ()) or _version(tensor) != version:
                found[key] = tensor
        kept = {
            name: torch.tensor(each, dtype=torch.float64)
            if isinstance(each, float)
            else each.detach().clone()
            for name, each in found.items()
            if isinstance(each, float) or is_float(each, torch)
        }
        self._put_back()
        return kept

    def _graded(self, result: Any, named: Sequence[Named], stance: str) -> dict[str, Any]:
        """Gradients by name: where a backward was compiled, and none of these runs failed in it."""
        made = made_of(result, self._parts.torch)
        if self._gradients is None or not has_backward(made):
            self._gradients = None
            return {}
        try:
            return self._gradients.of(result, leaves_of(named), first=stance == "eager")
        except Exception:  # noqa: BLE001 - what only a backward meets, the outputs are there
            self._gradients = None
            return {}

    def _put_back(self) -> None:
        self._objects.put_back()
        self._state.restore()


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
def _without_cudagraphs(watch: Own) -> Iterator[list[Any]]:
    """What cudagraphs would replay runs, watched; the list has what ran so."""
    trees, ran = sys.modules.get("torch._inductor.cudagraph_trees"), list[Any]()
    if trees is None:
        yield ran
        return

    def run(manager: Any, inputs: list[Any], function: Any) -> Any:
        ran.append(function)
        with watch:
            return manager.ids_to_funcs[function].model(inputs)

    manager, replaying = trees.CUDAGraphTreeManager, trees.CUDAGraphTreeManager._run
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
