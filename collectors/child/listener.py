"""What the gates and the optimizers' hook report to: finds the edges, times watched calls."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from threading import get_ident
from typing import Any

from .driver import Driver, Parts
from .environment import refused_modes
from .gate import Opened
from .regions import torchscript_of
from .stances import CodeUsed
from .state import FOREVER, Gate, Region, Served
from .taken import Taker, sizes_of

UNCOMPILED_STEPS = 100
UNCOMPILED_SECONDS = 30.0
MAX_ROWS = 5000  # calls of one region that are written as rows
MOST_SIZES = 64  # combinations of one region that are counted apart; later ones are one
OTHER_SIZES = "others"
_SKIPPED = object()  # mark of a call between a switch of the stance and the timed steps after it


class Calls:
    """The `Listener` of every gate."""

    def __init__(self, parts: Parts, driver: Driver, taker: Taker | None = None) -> None:
        self._parts = parts
        self._taker = taker
        self._control = parts.control
        self._driver = driver
        self._stacks: dict[int, list[dict[str, Any]]] = {}
        self._uncompiled = 0
        self._began = 0.0
        self._code_used: CodeUsed | None = None
        self._serving: Served | None = None

    def before(self, gate: Gate, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Opened | None:
        region = gate.region
        self._parts.frozen.unlisten()
        if self._control.off:
            region.grant(FOREVER)
            return None
        wanted = self._driver.watching and not self._control.is_settled(region)
        if self._taker is not None and wanted and not self._parts.window.open:
            began = time.perf_counter_ns()
            self._taker.look(gate, args, kwargs, self._driver.phase)
            self._parts.memory.ours = self._taker.device_bytes
            self._driver.leave_out(time.perf_counter_ns() - began)
        if self._driver.anchor.called(region):
            self._driver.restart()
        is_anchor, skipped = self._driver.anchor.region is region, False
        if is_anchor and region.remaining < 0:  # else it took over while steps are counted down
            self._driver.edge()
            if not self._driver.watching and not self._parts.timer.is_open:
                note_sizes(region, (*args, *kwargs.values()), self._parts.torch.Tensor)
                skipped = True
            if self._taker is not None and self._driver.anchor.over:
                self._taker.let_go(self._control)
                self._parts.memory.ours = self._taker.device_bytes
        elif self._control.is_settled(region):
            self._driver.look()
        watching = self._driver.watching or not region.first_called
        if not is_anchor:
            region.grant(self._driver.left_of(region))
        self._look_at_weights(region)
        if not watching:
            looks = skipped and self._look_at_code(region)
            looks |= self._look_at_hooks(gate)
            looks |= skipped and self._parts.frozen.listens
            return (0, 0, self._control.compiles, _SKIPPED) if looks else None
        if not region.first_called:
            of = torchscript_of(gate.original, self._parts.torch)
            region.torchscript, region.torchscript_within = of
        opened = self._open(region, outermost=True)
        self._look_at_code(region)
        self._look_at_hooks(gate)
        return opened

    def after(
        self, region: Region, opened: Opened, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self._parts.hooks.end()
        given = (*args, *kwargs.values())
        if (serving := self._serving) is not None and self._code_used is not None:
            self._serving, used = None, self._code_used.end()
            self._count_served(serving, given, used or self._control.compiles > opened[2])
        if opened[3] is not _SKIPPED:
            self._close(region, opened, outermost=True, given=given)
        # Then a call that reports comes before a block is timed; an optimizer's step does not.
        called = self._driver.anchor.region is not None and self._untimed
        if called and (self._driver.watching or opened[3] is _SKIPPED):
            self._parts.frozen.listen()

    def nested(self, region: Region) -> Opened:
        return self._open(region, outermost=False)

    def after_nested(self, region: Region, opened: Opened) -> None:
        self._close(region, opened, outermost=False)

    def optimizer_stepped(self, optimizer: Any) -> None:
        """A step has ended, in no graph; an edge if this optimizer is the anchor."""
        control, me = self._control, get_ident()
        if control.depth:
            control.flat = False
        if control.off or control.depth:
            return
        if control.threaded and me not in control.inside:
            with control.lock:
                control.at_edge = True
                try:
                    self._stepped(optimizer)
                finally:
                    control.at_edge = False
        elif me == control.thread:
            self._stepped(optimizer)

    def _stepped(self, optimizer: Any) -> None:
        control, anchor = self._control, self._driver.anchor
        if anchor.is_optimizer(optimizer):
            anchor.left -= 1
            if anchor.left < 0:
                self._driver.edge()
        elif self._driver.complete:
            self._driver.edge()
        elif anchor.stepped(optimizer):
            self._driver.restart()
            self._driver.edge()
        elif anchor.inherits(optimizer):
            self._driver.step += 1
        elif self._driver.plans_done:
            self._driver.look()
        elif not control.regions:
            self._uncompiled_step()

    def _uncompiled_step(self) -> None:
        """Steps of a script that has compiled nothing yet; give up on it after a while."""
        self._parts.compiles.listen()
        now = time.monotonic()
        self._began = self._began or now
        self._uncompiled += 1
        self._driver.step += 1
        enough = self._uncompiled >= UNCOMPILED_STEPS and now - self._began >= UNCOMPILED_SECONDS
        if enough and not self._control.compiles:
            self._driver.give_up()

    def _look_at_code(self, region: Region) -> bool:
        """Until this call ends, watch whether compiled code runs in it, if that can be."""
        control, stances = self._control, self._parts.stances
        if control.threaded or self._parts.window.open or stances.name != "compiled":
            return False
        self._code_used = self._code_used or CodeUsed()
        if self._code_used.begin():
            key = stances.in_force, region.modes is not None
            self._serving = region.served.setdefault(key, Served())
        return self._serving is not None

    def _look_at_hooks(self, gate: Gate) -> bool:
        """Until this call ends, see whose hooks run in it, if nothing is timed."""
        parts = self._parts
        if not parts.hooks.late or not self._untimed:
            return False
        return parts.hooks.begin(gate, parts.stances.name)

    def _look_at_weights(self, region: Region) -> None:
        """Have frozen weights changed? Of calls that nothing times."""
        if self._untimed:
            spent_ns = self._parts.frozen.look(region, self._parts.stances.name)
            self._driver.leave_out(spent_ns)

    @property
    def _untimed(self) -> bool:
        """Whether neither a window nor a timed block is open, and one thread alone calls."""
        parts = self._parts
        return not (self._control.threaded or parts.window.open or parts.timer.is_open)

    def _count_served(self, serving: Served, given: tuple[Any, ...], compiled: bool) -> None:
        serving.calls += 1
        if not compiled:
            serving.eager += 1
            text = _sizes(given, self._parts.torch.Tensor)
            if text not in serving.eager_sizes and len(serving.eager_sizes) < MOST_SIZES:
                serving.eager_sizes.append(text)

    def _note_modes(self, region: Region) -> None:
        """Of a call of what is compiled: dispatch modes are kept that it is the first under."""
        if region.modes is None and self._parts.stances.name == "compiled":
            modes = ", ".join(refused_modes())
            if modes:
                region.modes = modes
                region.modes_call = region.calls - 1

    def _open(self, region: Region, *, outermost: bool) -> Opened:
        if not region.first_called and region.region_id not in self._stacks:
            stack = self._parts.frames.stack(sys._getframe(2))
            self._stacks[region.region_id] = stack
        self._note_modes(region)
        mark = None
        if outermost and self._parts.window.open:
            mark = self._parts.window.mark_call(region.region_id)
        return (time.time_ns() // 1000, time.perf_counter_ns(), self._control.compiles, mark)

    def _close(
        self, region: Region, opened: Opened, *, outermost: bool, given: tuple[Any, ...] = ()
    ) -> None:
        started_us, started_ns, compiles, mark = opened
        host_ms = (time.perf_counter_ns() - started_ns) / 1e6
        if mark is not None:
            mark.__exit__(None, None, None)
        if self._control.off:
            return
        row = [region.calls - 1, self._driver.step, started_us, host_ms]
        row += [self._control.compiles - compiles, outermost]
        if not self._parts.window.open:
            self._record(region, row, given)
            return
        with self._parts.window.own_work():
            self._record(region, row, given)

    def _record(self, region: Region, row: list[Any], given: tuple[Any, ...]) -> None:
        """``row`` is one of the ``calls`` event, ``given`` the arguments of the call."""
        driver, recorder = self._driver, self._parts.recorder
        # In another anchor's eager block nothing of this region is compiled: that comes later.
        if not region.first_called and self._parts.stances.name == driver.own_stance:
            region.first_called = True
            stack = self._stacks.pop(region.region_id, [])
            for entry in stack:
                self._parts.sources.keep(entry["file"])
            keys = {"region_id": region.region_id, "host_ms": row[3], "stack": stack}
            recorder.write("first_call", **keys, step=driver.step)
        if region.calls <= MAX_ROWS or row[4]:
            stance, phase = self._parts.stances.name, driver.phase
            recorder.row("calls", row, region_id=region.region_id, phase=phase, stance=stance)
            if not self._parts.window.open:
                recorder.flush(due=True)
        note_sizes(region, given, self._parts.torch.Tensor)


def on_optimizer_step(torch: Any, act: Callable[[Any], None]) -> None:
    """Call ``act(optimizer)`` after every step that is not traced into a graph.

    Inside a compiled function Dynamo traces the hook: ``is_compiling()`` is a constant there, so
    the hook ends before anything of ours and adds neither a graph break nor a graph. What remains
    (torch 2.13): after a graph break inside a step, Dynamo keeps the empty rest of the step as
    guarded code where without a hook it would skip that frame.
    """
    is_compiling = torch.compiler.is_compiling

    def hook(optimizer: Any, _args: Any, _kwargs: Any) -> None:
        if is_compiling():
            return
        act(optimizer)

    # `torch.optim.optimizer` as an attribute is shadowed; the module is in sys.modules
    if (module := sys.modules.get("torch.optim.optimizer")) is not None:
        module.register_optimizer_step_post_hook(hook)


def note_sizes(region: Region, given: tuple[Any, ...], tensor: type) -> None:
    """Count the sizes of the tensors among the arguments, and one level inside of containers."""
    text = _sizes(given, tensor)
    known = region.sizes
    key = text if text in known or len(known) < MOST_SIZES else OTHER_SIZES
    known[key] = known.get(key, 0) + 1


def _sizes(given: Iterable[Any], tensor: type) -> str:
    return ", ".join("x".join(map(str, size)) or "()" for size in sizes_of(given, tensor))
