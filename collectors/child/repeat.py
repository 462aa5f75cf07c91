"""Calls of the script, made again when it has ended, on copies of their inputs.

Where the script ended before its speedup was known, measuring goes on with these calls.

The plan is carried out as in the script, by a driver of its own, on the callables, weights and
compiled code of the script. What a replayed call prints is not shown, what it writes into its
arguments and its module's buffers is put back, and so are modes and random numbers. A call that
would have to be compiled again is not the script's any more, and is not replayed.
"""

from __future__ import annotations

import itertools
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import Any

from .config import Config
from .copies import Originals
from .driver import Driver, Parts
from .gate import counting
from .listener import Calls
from .logs import nothing_shown
from .recorder import Recorder
from .replay import (
    Seeds,
)
from .state import Control, Gate, Region
from .taken import Arguments, Taken, Taker, bytes_of, cloned, most_bytes

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
        self._parts, self._taken, self._gate = parts, taken, gate_of(taken)
        parts.window.of(taken.region_id, "call")
        windows = parts.window.of_each  # an early one, and a longer one
        profile = profile and config.profile and windows < 2
        profile = profile and not script.never_quiet  # its steps do what a replayed call does not
        self._driver = Driver(
            replace(config, run_to_end=True, stop_after_steps=None, profile=profile),
            replace(parts, recorder=_Phases(parts.recorder)),
            lambda: None,
        )
        self._driver.go_on_from(script, profiled=windows > 0)
        script.go_on_from(self._driver)

    def measure(self, seconds: float) -> None:
        """Replay until the plan is complete, or for so long."""
        parts, taken, gate = self._parts, self._taken, self._gate
        torch, control = parts.torch, parts.control
        with ExitStack() as stack:
            stack.enter_context(as_then(torch, gate, taken, SLOW * seconds + HANGS_S))
            if parts.trials.left:  # the workers that compile have ended with the script
                stack.enter_context(torch._inductor.config.patch(compile_threads=1))
            else:
                stack.enter_context(parts.stances.without_recompiles())
            # Calls and compiles are counted again, on this thread; no compiles are written.
            control.off, control.depth, control.thread = False, 0, threading.get_ident()
            control.only = None
            control.inside.clear()
            parts.compiles.silent = True
            gate.region.grant(0)
            stack.callback(setattr, parts.compiles, "silent", False)
            stack.callback(control.switch_off)
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
            state = State(torch, _written_to(parts, gate, given))
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
            timer.finish()
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


class State:
    """Tensors that calls may write into, with their values."""

    def __init__(self, torch: Any, tensors: Iterable[Any]) -> None:
        self._torch = torch
        self._kept = [(tensor, tensor.detach().clone()) for tensor in tensors]
        self._seen = [version_of(tensor) for tensor, _ in self._kept]

    def restore(self) -> None:
        """Put back what was written; quick where nothing was."""
        with self._torch.no_grad():
            for index, (tensor, value) in enumerate(self._kept):
                if version_of(tensor) != self._seen[index]:
                    tensor.copy_(value)
                    self._seen[index] = version_of(tensor)


def version_of(tensor: Any) -> int:
    """Inference tensors count none: then every call counts as one that has written."""
    return time.perf_counter_ns() if tensor.is_inference() else int(tensor._version)


def gate_of(taken: Taken) -> Gate:
    """Of the callable whose call it is; NotReplayed where the script has freed that."""
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
    if bytes_of(tensors) > 2 * most_bytes(tensors):
        raise NotReplayed("what its calls may write into is too large to be copied")
    return tensors


def _casting_each(call: Callable[..., Any], taken: Taken, torch: Any) -> Callable[..., Any]:
    """Autocast is entered for each call: while it lasts, weights are cast once only."""

    def cast(*args: Any, **kwargs: Any) -> Any:
        with taken.mode.casting(torch):
            return call(*args, **kwargs)

    return cast


@contextmanager
def as_then(torch: Any, gate: Gate, taken: Taken, most_s: float) -> Iterator[Seeds]:
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
