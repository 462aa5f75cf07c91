"""Step edges: where the plan's orders are carried out.

An edge is the start of an outermost call of the anchor region, or the end of a step of the anchor
optimizer. Between the edges that the plan wants, a step costs a decrement and a compare.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import plan
from .anchor import Anchor
from .clock import BlockTimer, gpu_in_use
from .compiles import Compiles
from .config import Config
from .frames import Frames, Sources
from .memory import Memory
from .recorder import Recorder
from .stances import Stances, inside_compiled_frame
from .state import FOREVER, Control
from .window import Window, cupti_is_torn_down

MAX_STOPS = 10


@dataclass
class Parts:
    """The collector's parts, made once torch is there."""

    torch: Any
    control: Control
    recorder: Recorder
    frames: Frames
    sources: Sources
    stances: Stances
    memory: Memory
    timer: BlockTimer
    window: Window
    compiles: Compiles


class Driver:
    """Runs the plan. ``step`` is the index of the step that began at the last edge, from 0."""

    def __init__(self, config: Config, parts: Parts, on_steady: Callable[[], None]) -> None:
        self._config = config
        self._parts = parts
        self._control = parts.control
        self._on_steady = on_steady
        self.anchor = Anchor(parts.control)
        self._settings = plan.Settings(
            stances=("eager", "compiled") if config.mode == "paired" else (config.mode,),
            steps=config.steps,
            blocks=config.blocks,
            profile=config.profile,
            fixed=config.nproc > 1,
        )
        self._plan: plan.Steps | None = None
        self._wait = plan.Wait(1, watch=True)
        self._waited = 0
        self._granted = 1
        self._recent: deque[float] = deque(maxlen=3)
        self._step_began: tuple[float, int, int] | None = None
        self._not_theirs_ns = 0
        self._pairs = 0
        self._stops = 0
        self.phase: plan.Phase = "cold"
        self.step = -1
        self.complete = False

    @property
    def steps_seen(self) -> int:
        """All steps so far: those counted down since the last edge, and the one that has begun.

        An optimizer's step is seen at its end, so that what has begun after it is not a step yet.
        """
        passed = max(1, self._granted - max(self.anchor.remaining, 0))
        return self.step + passed - (self.anchor.region is None and self.step >= 1)

    @property
    def step_now(self) -> int:
        """Index of the step that runs: `step`, and those counted down since that edge."""
        return self.step + max(0, self._granted - max(self.anchor.remaining, 0) - 1)

    @property
    def own_stance(self) -> plan.Stance:
        """The stance that the pass is about: compiled, or eager in a baseline pass."""
        return self._settings.stances[-1]

    @property
    def watching(self) -> bool:
        return self._wait.watch and not self.complete

    def restart(self) -> None:
        """Another anchor: drop what is open and begin a new set of pairs with it."""
        if self.complete:
            return
        self._parts.timer.drop()
        self._parts.window.stop()
        if self._plan is not None:
            self._plan.close()
        self._plan = None
        self._recent.clear()
        self._step_began = None
        self._granted = 1

    def go_on_from(self, other: Driver) -> None:
        """Number steps and pairs after another driver's."""
        self._pairs, self.step = other._pairs, other.steps_seen - 1

    def leave_out(self, ns: int) -> None:
        """Work of ours in the step that runs is no time of the step's."""
        self._not_theirs_ns += ns

    def edge(self) -> None:
        """A step edge that the plan waits for. May raise SystemExit(0): the end of the plan."""
        now = time.perf_counter_ns()
        if not self._parts.window.open:
            self._at_edge(now)
            return
        with self._parts.window.own_work():
            self._at_edge(now)

    def _at_edge(self, now: int) -> None:
        if self.complete:
            self._stop()
            return
        self.step += self._granted
        if inside_compiled_frame():  # no stance can be set here; the next edge will do
            self._grant(1)
            return
        self._waited += self._granted
        self._end_step(now)
        limit = self._config.stop_after_steps
        if limit is not None and self.step >= limit:
            self._finish(complete=False)
            return
        if self._plan is None or self._waited >= self._wait.steps:
            self._advance(now)
        if not self.complete:
            self._begin_step()

    def _advance(self, now: int) -> None:
        """Carry out orders until the plan wants steps to pass."""
        ahead = self._config.after_steps - self.step
        if self._plan is None and ahead > 0:
            self._wait, self._waited = plan.Wait(ahead), 0
            return
        try:
            if self._plan is None:
                self._parts.stances.take(self.own_stance)
                self._plan = plan.measuring_plan(self._settings, self._pairs)
                order = next(self._plan)
            else:
                order = self._plan.send(self._moment())
            while not isinstance(order, plan.Wait):
                self._carry_out(order, now)
                order = self._plan.send(self._moment())
        except StopIteration:
            self._finish(complete=True)
            return
        self._wait = order
        self._waited = 0

    def _carry_out(self, order: plan.Order, now: int) -> None:
        parts, control = self._parts, self._control
        if isinstance(order, plan.OpenBlock):
            if order.pair is not None:
                self._pairs = order.pair + 1
            parts.timer.open(order, control, step=self.step, anchor=self.anchor.region_id)
        elif isinstance(order, plan.CloseBlock):
            parts.timer.close(now, control)
        elif isinstance(order, plan.Take):
            parts.timer.drain()
            parts.stances.take(order.stance)
        elif isinstance(order, plan.Enter):
            self._enter(order)
        elif isinstance(order, plan.Steady):
            device = gpu_in_use(parts.torch)  # then device events are the clock from here on
            parts.timer.device = parts.memory.device = parts.window.device = device
            keys = {"never_quiet": order.never_quiet, "step_kind": self.anchor.kind}
            parts.recorder.write("steady", step=self.step, **keys)
            self._on_steady()
        elif isinstance(order, plan.PrepareWindow):
            parts.window.prepare(order.stance)
        elif isinstance(order, plan.OpenWindow):
            parts.window.start(order.stance, order.purpose)
        elif isinstance(order, plan.CloseWindow):
            parts.window.stop()
        elif isinstance(order, plan.LeaveOut):
            parts.recorder.note(order.what, order.why)

    def _enter(self, order: plan.Enter) -> None:
        self.phase = order.phase
        recorder, stance = self._parts.recorder, self._parts.stances.name
        recorder.flush()
        recorder.write(
            "phase", phase=order.phase, detail=order.detail, step=self.step, stance=stance
        )

    def _moment(self) -> plan.Moment:
        guess = {"compiled": statistics.median(self._recent)} if self._recent else {}
        cudagraphs = any(region.cudagraphs for region in self._control.regions)
        device = self._parts.timer.device
        return plan.Moment(
            step=self.step,
            seconds=time.monotonic(),
            compiles=self._control.compiles,
            step_ms=self._parts.timer.step_ms or guess,
            step_kind=self.anchor.kind or "call",
            device=device,
            profiler_stays=device and not cupti_is_torn_down(),
            calm_steps=5 if cudagraphs else 3,
            pairs=self._parts.timer.pairs,
        )

    # -- between two edges --------------------------------------------------------------------

    def _end_step(self, now: int) -> None:
        """Write the step that ends here, if it was watched."""
        if self._step_began is None:
            return
        started_us, started_ns, compiles = self._step_began
        self._step_began = None
        host_ms = (now - started_ns - self._not_theirs_ns) / 1e6
        self._recent.append(host_ms)
        values = [self.step - 1, started_us, host_ms, self._control.compiles - compiles]
        recorder = self._parts.recorder
        recorder.row("steps", values, phase=self.phase, stance=self._parts.stances.name)
        if not self._parts.window.open:
            recorder.flush(due=True)

    def _begin_step(self) -> None:
        """Let the regions run up to the next edge that matters."""
        left = self._wait.steps - self._waited
        if self._config.stop_after_steps is not None:
            left = min(left, max(1, self._config.stop_after_steps - self.step))
        control, watch = self._control, self._wait.watch
        control.watching = watch
        self._grant(1 if watch else left)
        if watch:
            self._parts.compiles.listen()
            self._parts.window.mark_step(self.step)
            self._not_theirs_ns = 0
            self._step_began = time.time_ns() / 1000, time.perf_counter_ns(), control.compiles

    def _grant(self, steps: int) -> None:
        """``steps`` steps of the anchor until the next edge."""
        self._granted = steps
        others = FOREVER if self.complete else self.anchor.patience
        self._control.grant(0 if self._wait.watch else others)
        if self.anchor.region is not None:
            self.anchor.region.grant(steps - 1, straight=self._control.straight)
        else:
            self.anchor.left = steps - 1

    # -- the end ------------------------------------------------------------------------------

    def give_up(self) -> None:
        """A script that compiles nothing: there is nothing to wait for."""
        self._finish(complete=True)

    def _finish(self, *, complete: bool) -> None:
        """The plan is over: back to the script's own stance, count cheaply, stop if asked to."""
        parts = self._parts
        self.complete = True
        stopping = not self._config.run_to_end
        parts.timer.drop()
        parts.window.stop()
        parts.timer.settle(wait=True)
        parts.stances.take(self.own_stance)
        self._enter(plan.Enter("tail"))
        parts.recorder.write("done", step=self.step, stopping=stopping, complete=complete)
        self._control.watching = False
        self._wait = plan.Wait(FOREVER)
        self._stop()

    def _stop(self) -> None:
        """Raise SystemExit(0) here, and at the next edges if the script swallows it."""
        main = threading.current_thread() is threading.main_thread()
        if self._config.run_to_end or not main or self._stops >= MAX_STOPS:
            self._grant(FOREVER)
            return
        self._stops += 1
        self._grant(1)
        raise SystemExit(0)
