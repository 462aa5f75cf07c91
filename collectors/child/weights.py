"""Weights that don't do what their owner thinks: constants of compiled code, and untrained ones.

Where Inductor freezes (``torch._inductor.config.freezing``, gradients off), parameters and buffers
are constants of what it compiles, and no guard looks at their values. Versions and addresses are
looked at in calls that nothing times; values where one of these has changed. In the first gaps
between such calls Python's profile function shows the line that changes weights.

A frozen network that still says ``requires_grad`` gets gradients in each step. Nothing uses or
resets them, so each backward adds to them in place, and a gradient's version counts that. They are
looked at once, after a profiler window: one ``untrained_weight`` event each.
"""

from __future__ import annotations

import functools
import gc
import sys
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any

from .compiles import Compiles
from .frames import OURS, Frames, Sources, outward
from .importhook import after_import
from .recorder import Recorder
from .regions import hide_from_dynamo
from .state import Control, Region

MOST_GRAPHS = 64  # of one process, whose frozen weights are watched
LOOKS_AT_ONCE = 20  # at weights, before they are some time apart
BETWEEN_LOOKS_S = 0.1
LOOK_TIMES_APART = 50  # of the time that the last look took, at least
LISTENS = 64  # gaps between calls that report in which the line is looked for
MOST_HEARD = 100_000  # events of one gap
EVENTS_A_CHECK = 100  # as which a look at all versions counts
MOST_NAMES = 3
_GATE = OURS + "gate.py"
#: Enough to tell a gradient that is never reset from one that is accumulated over a few steps.
ENOUGH_STEPS = 24
FEWEST_ADDITIONS = 16
MOST_WEIGHTS = 4096
_COMPILED = "_orig_mod."  # within the module that torch.compile gives back


@dataclass(eq=False)
class _Weight:
    """A tensor that is a constant of compiled code: how it was then, and at the last look."""

    ref: weakref.ref[Any]
    name: str | None
    state: tuple[Any, ...]
    values: str
    changed: bool = False


@dataclass(eq=False)
class _Frozen:
    """The weights of one graph; ``calls`` that were looked at after one had changed."""

    region: Region
    weights: list[_Weight]
    frozen_us: float
    changed_us: float | None = None
    last_changed_us: float | None = None
    step: int | None = None
    calls: int = 0


class FrozenWeights:
    """Writes a ``frozen_weights`` event for each graph whose frozen weights were changed."""

    def __init__(
        self,
        control: Control,
        recorder: Recorder,
        frames: Frames,
        sources: Sources,
        step: Callable[[], int],
    ) -> None:
        self._control, self._recorder = control, recorder
        self._frames, self._sources, self._step = frames, sources, step
        self._graphs: list[_Frozen] = []
        self._site: dict[str, Any] = {}
        self._looks = self._listens = self._heard = 0
        self._next_look_s = 0.0
        self._torch: Any = None
        self._began = Compiles._began.__code__

    def watch(self, torch: Any) -> None:
        """Hear of every graph that Inductor freezes."""
        self._torch = torch
        hide_from_dynamo(self._profile)
        after_import("torch._inductor.freezing", self._patch)

    def _patch(self, module: Any) -> None:
        plain = getattr(module, "freeze", None)
        if plain is None:
            return

        @functools.wraps(plain)
        def freeze(*args: Any, **kwargs: Any) -> Any:
            # Of the graph that is compiled: its parameters and buffers, in the order of its inputs.
            guards: Any = sys.modules.get("torch._guards")
            context = guards and guards.TracingContext.try_get()
            flat = getattr(context, "params_flat", None)  # of older torch
            tensors = list(getattr(context, "params_flat_unwrap_subclasses", None) or flat or ())
            result = plain(*args, **kwargs)
            # What is tried is not what the script does.
            if not self._control.off and self._control.targets is None:
                try:
                    self._froze(tensors, set(result[1]), sys._getframe(1))
                except Exception as error:  # noqa: BLE001 - the script's compile must go on
                    self._recorder.note("weights that were frozen", error)
            return result

        module.freeze = freeze

    def _froze(self, tensors: list[Any], kept: set[int], frame: FrameType) -> None:
        gates = (each.f_locals for each in outward(frame) if each.f_code.co_filename == _GATE)
        gate = next((names["gate"] for names in gates if "gate" in names), None)
        if gate is None or len(self._graphs) >= MOST_GRAPHS:
            return
        self._see()  # what has changed by now is in the new graph
        owner, names = getattr(gate.original, "__self__", gate.original), {}
        for kind in ("named_parameters", "named_buffers"):
            named = getattr(owner, kind, None)
            names.update({id(each): name for name, each in named()} if named else {})
        weights = []
        for index, tensor in enumerate(tensors):
            values = None if index in kept else self._values(tensor)
            if values is not None:
                name, ref = names.get(id(tensor)), weakref.ref(tensor)
                weights.append(_Weight(ref, name, _state(tensor), values))
        self._graphs.append(_Frozen(gate.region, weights, time.time_ns() / 1000))

    def _values(self, tensor: Any) -> str | None:
        """What differs where the values do, as text (of NaN too); None where that can't be had."""
        from torch.utils._python_dispatch import _disable_current_modes

        try:
            with _disable_current_modes(), self._torch.no_grad():
                flat = tensor.detach().reshape(-1)
                few = flat[:: max(1, flat.numel() // 64)].double()
                total = flat.sum(dtype=self._torch.float64)
                return str((total.item(), *few.tolist()))
        except Exception:  # noqa: BLE001 - quantized, complex, a subclass that can't do it
            return None

    def look(self, region: Region, stance: str) -> int:
        """Before a call that nothing times; nanoseconds that it took."""
        if not self._graphs:
            return 0
        began, now = time.perf_counter_ns(), time.monotonic()
        if self._looks >= LOOKS_AT_ONCE and now < self._next_look_s:
            return 0
        self._looks += 1
        self._see()
        spent_ns = time.perf_counter_ns() - began
        self._next_look_s = now + max(BETWEEN_LOOKS_S, LOOK_TIMES_APART * spent_ns / 1e9)
        if stance == "compiled" and not self._torch.is_grad_enabled():
            for graph in self._graphs:
                graph.calls += graph.region is region and graph.changed_us is not None
        return spent_ns

    def _see(self) -> bool:
        """Look at every weight whose version or address is another one; whether a value is, too."""
        news = False
        for graph in self._graphs:
            for weight in graph.weights:
                tensor = weight.ref()
                if tensor is None or (state := _state(tensor)) == weight.state:
                    continue
                weight.state = state
                values = self._values(tensor)
                if values is None or values == weight.values:
                    continue
                weight.values, weight.changed, news = values, True, True
                graph.last_changed_us = time.time_ns() / 1000
                if graph.changed_us is None:
                    graph.changed_us, graph.step = graph.last_changed_us, self._step()
        return news

    @property
    def listens(self) -> bool:
        """Whether the line is still to be seen."""
        return bool(self._graphs) and not self._site and self._listens < LISTENS

    def listen(self) -> None:
        """A call has ended that nothing timed: until another reports, see what changes weights."""
        if self.listens and sys.getprofile() is None:
            self._listens, self._heard = self._listens + 1, 0
            sys.setprofile(self._profile)

    def unlisten(self) -> None:
        """A call that reports begins."""
        if sys.getprofile() == self._profile:
            sys.setprofile(None)

    def _profile(self, frame: FrameType, event: str, arg: Any) -> None:
        self._heard += 1
        if self._heard > MOST_HEARD or (event == "call" and frame.f_code is self._began):
            sys.setprofile(None)
        elif event == "c_return":
            name = getattr(arg, "__name__", "")
            if name[-1:] != "_" or name[-2:] == "__":
                return
            self._heard += EVENTS_A_CHECK
            if self._see():
                sys.setprofile(None)
                self._site = self._frames.call_site(frame) or {}
                self._sources.keep(self._site.get("file"))

    def finish(self) -> None:
        """The script has ended."""
        self.unlisten()
        self._see()
        for graph in self._graphs:
            changed = [weight for weight in graph.weights if weight.changed]
            if changed:
                self._recorder.write(
                    "frozen_weights",
                    region_id=graph.region.region_id,
                    weights=len(graph.weights),
                    changed=len(changed),
                    names=[weight.name for weight in changed if weight.name][:MOST_NAMES],
                    frozen_us=graph.frozen_us,
                    changed_us=graph.changed_us,
                    last_changed_us=graph.last_changed_us,
                    step=graph.step,
                    stale_calls=graph.calls,
                    **self._site,
                )


def _state(tensor: Any) -> tuple[Any, ...]:
    """What a change in place, or other data, changes."""
    try:
        return None if tensor.is_inference() else tensor._version, tensor.data_ptr()
    except Exception:  # noqa: BLE001 - it has no data of its own by now
        return ()


def write_untrained(torch: Any, recorder: Recorder) -> None:
    """Nothing where no optimizer is alive: then it is not known what is trained."""
    try:
        modules, trained = [], set[int]()
        for each in gc.get_objects():
            if issubclass(type(each), torch.nn.Module):
                modules.append(each)
            elif issubclass(type(each), torch.optim.Optimizer):
                groups = getattr(each, "param_groups", ())
                trained |= {id(weight) for group in groups for weight in group["params"]}
        if not trained:
            return
        inner = {id(part) for module in modules for part in module._modules.values()}
        names: dict[str, bool] = {}
        found: dict[str, int] = {}
        for root in (module for module in modules if id(module) not in inner):
            for full_name, weight in root.named_parameters():
                name = full_name.replace(_COMPILED, "")
                names[name] = names.get(name, False) or id(weight) in trained
                # What a script changes by hand, in place, is trained as well.
                still = weight.requires_grad and weight._version < FEWEST_ADDITIONS
                if still and weight.grad is not None and weight.grad._version >= FEWEST_ADDITIONS:
                    found[name] = weight.grad._version
    except Exception as error:  # noqa: BLE001 - the user's objects may do anything
        recorder.note("weights that nothing trains", error)
        return
    untrained = [(name, added) for name, added in found.items() if not names[name]]
    for name, additions in untrained[:MOST_WEIGHTS]:
        recorder.write("untrained_weight", name=name, additions=additions)
