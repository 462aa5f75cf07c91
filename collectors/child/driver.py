"""Step edges: where the plan's orders are carried out.

An edge is the start of an outermost call of the anchor region, or the end of a step of the anchor
optimizer. Between the edges that the plan wants, a step costs a decrement and a compare.

Where the plan of one anchor is complete and the script may call, or compile, something of which
nothing is measured yet, the driver rests: the next such region becomes the anchor of a plan of its
own. It waits for that at most as long as the run has lasted by then.
"""

from __future__ import annotations

import statistics
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from threading import get_ident
from typing import Any

from . import plan
from .anchor import Anchor
from .clock import BlockTimer, gpu_in_use
from .compiles import Compiles
from .config import Config
from .frames import Frames, Sources
from .masks import Masks
from .memory import Memory
from .modules import EagerCopies, LateHooks, LostWeights
from .reach import CompileLines, Loops
from .recorder import Recorder
from .remedies import Trials
from .stances import Stances, inside_compiled_frame
from .state import FOREVER, LONGEST_CALL_S, Control, Region
from .threads import Threads
from .weights import ENOUGH_STEPS, FrozenWeights, write_untrained
from .window import Window, cupti_is_torn_down

MAX_STOPS = 10
#: Part of a step below which its own page faults need not be seen in a profile.
FEW_FAULTS = 0.01
LOOK_S = 1.0  # between two looks at whether to wait on, while a plan is over
LAST_S = 2.0  # of steps before results are compared: what compiled code keeps may change later


@dataclass
class Parts:
    """The collector's parts, made once torch is there."""

    torch: Any
    control: Control
    recorder: Recorder
    frames: Frames
    sources: Sources
    stances: Stances
    trials: Trials
    memory: Memory
    timer: BlockTimer
    window: Window
    threads: Threads
    compiles: Compiles
    hooks: LateHooks
    copies: EagerCopies
    loads: LostWeights
    frozen: FrozenWeights
    masks: Masks

    def close_window(self, *, step_ended: bool = True) -> None:
        """End the profiler, in the middle of a step or not; what it keeps is no block's memory."""
        self.window.stop(step_ended=step_ended)
        self.memory.window_closed()


class Driver:
    """Runs the plan. ``step`` is the index of the step that began at the last edge, from 0."""

    def __init__(self, config: Config, parts: Parts, on_steady: Callable[[], None]) -> None:
        self._config = config
        self._parts = parts
        self._control = parts.control
        self._on_steady = on_steady
        self.anchor = Anchor(parts.control)
        self._settings = plan.Settings(
            stances=config.stances,
            steps=config.steps,
            blocks=config.blocks,
            profile=config.profile,
            fixed=config.nproc > 1,
        )
        if config.trial_seconds:
            own = config.trial_caches is not None and config.nproc == 1
            budget_ms = config.trial_seconds * 1e3
            self._settings = replace(self._settings, budget_ms=budget_ms, again=own)
        self._plan: plan.Steps | None = None
        self._wait = plan.Wait(1, watch=True)
        self._waited = 0
        self._granted = 1
        self._recent: deque[float] = deque(maxlen=3)
        self._step_began: tuple[float, int, int] | None = None
        self._not_theirs_ns = 0
        self._pairs = self._trial_pairs = 0
        self._stops = 0
        self._lines, self._loops = CompileLines(parts.frames), Loops(parts.frames)
        self._plan_began = 0
        self.several_threads = self._crossed = self._weights_seen = False
        self._began_s = self._news_s = time.monotonic()
        self._looked_s = 0.0
        self._news = (0, 0, 0)
        self.phase: plan.Phase = "cold"
        self.step = -1
        self.complete = self.never_quiet = False
        self._until_s: float | None = None
        self.plans_done = 0

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
        return "eager" if self._config.mode == "eager" else "compiled"

    @property
    def watching(self) -> bool:
        return self._wait.watch and not self.complete

    def restart(self) -> None:
        """Another anchor: drop what is open and begin a new set of pairs with it."""
        if self.complete:
            return
        timer = self._parts.timer
        timer.drop()
        self._drop_trial()
        self._parts.close_window()
        if self._plan is not None:
            self._plan.close()
        self._plan = None
        self._recent.clear()
        self._step_began = None
        self._granted = 1
        timer.settle(wait=True)
        timer.step_ms.clear()  # of another anchor's steps
        self._parts.window.most_steps.clear()
        timer.pairs.clear()

    def _drop_trial(self) -> None:
        """Take back what is tried: other steps are measured from here on, or none."""
        if self._parts.trials.current is not None:
            self._parts.stances.take(self.own_stance)
            self._parts.timer.trial = None
            self._parts.trials.drop(self.step)

    def conclude_trial(self) -> None:
        """No steps are left: what has enough pairs of blocks by now counts as measured."""
        parts = self._parts
        if parts.trials.current is None or parts.trials.over:
            return
        parts.timer.settle(wait=True)
        own = [pair for pair in parts.timer.pairs if pair.index >= self._trial_pairs]
        if len(own) >= plan.LEAST_PAIRS:
            parts.stances.take(self.own_stance)
            parts.timer.trial = None
            parts.trials.end(self.step)

    def go_on_from(self, other: Driver, *, profiled: bool = False) -> None:
        """Number steps and pairs after another driver's, which may have ``profiled`` some."""
        self._settings = replace(self._settings, profiled=profiled)
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
        if self._control.threaded and not self.several_threads:
            self.several_threads = True
            why = "a step is a call in any of them"
            self._parts.recorder.note("compiled calls come from several threads", why)
        self._control.edge_thread = get_ident()
        if inside_compiled_frame():  # no stance can be set here; the next edge will do
            self._grant(1)
            return
        self._waited += self._granted
        self._end_step(now)
        limit = self._config.stop_after_steps
        if limit is not None and self.step >= limit:
            self._finish(complete=False)
            return
        if self.anchor.over:
            self.look()
            self._grant(self._until_look())
            return
        if self._plan is None or self._waited >= self._wait.steps:
            self._advance(now)
        if not (self.complete or self.anchor.over):
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
                self._plan_began = self.step
                self.anchor.begin()
                self._parts.window.of(self.anchor.region_id, self.anchor.kind)
                self._plan = self._new_plan()
                order = next(self._plan)
            else:
                order = self._plan.send(self._moment())
            while not isinstance(order, plan.Wait):
                self._carry_out(order, now)
                order = self._plan.send(self._moment())
        except StopIteration:
            self._plan_over()
            return
        self._wait = order
        self._waited = 0

    def _new_plan(self) -> plan.Steps:
        if self._config.mode != "trials":
            return plan.measuring_plan(self._settings, self._pairs)
        trials = self._parts.trials
        settings = replace(self._settings, variants=trials.variants)
        return plan.trials_plan(settings, trials.left, self._pairs)

    def _carry_out(self, order: plan.Order, now: int) -> None:
        parts, control = self._parts, self._control
        if isinstance(order, plan.OpenBlock):
            if order.pair is not None:
                self._pairs = order.pair + 1
            parts.threads.block_opens()
            parts.timer.open(order, control, step=self.step, anchor=self.anchor.region_id)
        elif isinstance(order, plan.CloseBlock):
            parts.timer.close(now, control)
            parts.threads.block_closed(parts.stances.name)
        elif isinstance(order, plan.Take):
            self._calm_threads(order.stance)
            parts.timer.drain()
            parts.threads.look(self.step)
            trial = parts.trials.current if order.stance == "trial" else None
            parts.stances.take(order.stance, trial)
        elif isinstance(order, plan.BeginTrial) and order.again:
            parts.timer.settle(wait=True)
            parts.trials.compile_again(self.step)
        elif isinstance(order, plan.BeginTrial):
            self._trial_pairs = self._pairs
            parts.trials.begin(order.name)
            parts.timer.trial = order.name
        elif isinstance(order, plan.EndTrial):
            parts.timer.settle(wait=True)
            parts.timer.trial = None
            parts.timer.step_ms.pop("trial", None)
            parts.trials.end(self.step)
        elif isinstance(order, plan.Enter):
            self._enter(order)
        elif isinstance(order, plan.Steady):
            device = gpu_in_use(parts.torch)  # then device events are the clock from here on
            parts.timer.device = parts.memory.device = parts.window.device = device
            self.never_quiet = order.never_quiet
            keys = {"never_quiet": order.never_quiet, "step_kind": self.anchor.kind}
            parts.recorder.write("steady", step=self.step, **keys)
            if not any(each.lstrip("+-") == "cudagraphs" for each in self._config.user_logs):
                parts.compiles.hush()
            self._on_steady()
            self._loops.look(self.step)
        elif isinstance(order, plan.PrepareWindow):
            control.only = get_ident() if control.threaded else None
            parts.window.prepare(order.stance)
        elif isinstance(order, plan.OpenWindow):
            control.only = get_ident() if control.threaded else None
            parts.threads.stop_watching()
            parts.memory.window_opens()
            faults = parts.timer.fault_share.get(order.stance, 1.0)
            parts.window.start(order.stance, order.purpose, few_faults=faults < FEW_FAULTS)
        elif isinstance(order, plan.CloseWindow):
            parts.close_window()
            control.only = None
            if self.step >= ENOUGH_STEPS and not self._weights_seen:
                self._weights_seen = True
                write_untrained(parts.torch, parts.recorder)
        elif isinstance(order, plan.LeaveOut):
            parts.recorder.note(order.what, order.why)

    def _calm_threads(self, stance: plan.Stance) -> None:
        """Let no call of another thread lie across a switch: torch's stance is every thread's."""
        if not self._control.threaded or stance == self._parts.stances.name or self._crossed:
            return
        self._crossed = not self._control.calm()
        if self._crossed:
            why = f"a call in another thread took more than {LONGEST_CALL_S:g} s"
            self._parts.recorder.note("switching between calls only", why)

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
        cudagraphs = cudagraphs or self._parts.trials.current is not None
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
            trial_over=self._parts.trials.over,
            most_steps=self._parts.window.most_steps,
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
        keys = {"phase": self.phase, "stance": self._parts.stances.name}
        recorder.row("steps", values, **keys, anchor_region_id=self.anchor.region_id)
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
        for region in self._control.regions:
            region.grant(self.left_of(region), straight=self._control.straight)
        if self.anchor.region is not None:
            self.anchor.region.grant(steps - 1, straight=self._control.straight)
        else:
            self.anchor.left = steps - 1

    # -- between two plans --------------------------------------------------------------------

    def _plan_over(self) -> None:
        """The plan of this anchor is complete. Ranks must agree on the end: theirs is this one."""
        self._plan = None
        self.plans_done += 1
        if (job := self._loops.look(self.step)) is not None:
            self._parts.recorder.write("job_length", region_id=self.anchor.region_id, **job)
        self.anchor.conclude(self.step - self._plan_began)
        config = self._config
        alone = config.mode == "paired" and not self._settings.fixed
        if config.compare_outputs and config.nproc == 1 and not alone:
            self._until_s = time.monotonic() + LAST_S
        elif not alone or not (config.run_to_end or self._may_come()):
            self._finish(complete=True)
            return
        if self._config.run_to_end and self.plans_done == 1:
            self._parts.recorder.write("done", step=self.step, stopping=False, complete=True)
        self._parts.timer.settle(wait=True)
        self._parts.stances.take(self.own_stance)
        self._enter(plan.Enter("tail" if self._config.run_to_end else "between"))
        self._control.watching = False
        self._wait = plan.Wait(FOREVER)
        self._news, self._news_s = self._seen, time.monotonic()
        self._grant(self._until_look())

    @property
    def _seen(self) -> tuple[int, int, int]:
        """Compiles, regions and, where a plan is under way, steps: more of them are news."""
        steps = 0 if self.anchor.over else self.steps_seen
        return self._control.compiles, len(self._control.regions), steps

    def look(self) -> None:
        """Where a plan has been completed: stop here if no more is to come, or has for a while.

        What is measured calls this, while another plan waits for its anchor's calls, too.
        """
        now = time.monotonic()
        if self.complete or self._config.run_to_end or now - self._looked_s < LOOK_S:
            return
        self._looked_s = now
        if self._seen != self._news:
            self._news, self._news_s = self._seen, now
        if self._until_s is not None:
            over = now >= self._until_s
        else:
            late = now - self._news_s >= self._news_s - self._began_s
            over = late or (self.anchor.over and not self._may_come())
        if over:
            self._finish(complete=True)

    def _may_come(self) -> bool:
        """Whether something may be called, or compiled, of which nothing is measured yet."""
        control = self._control
        return control.waiting or self._lines.ahead(control.reached, sys._getframe(1))

    def _until_look(self) -> int:
        """Steps until the next look, while no plan wants any."""
        if self.complete or self._config.run_to_end:
            return FOREVER
        step_ms = self._parts.timer.step_ms.get(self.own_stance) or 1.0
        return max(1, int(LOOK_S * 1e3 / step_ms))

    def left_of(self, region: Region) -> int:
        """Outermost calls that a region which is not the anchor makes before it reports again."""
        if self.watching or not region.first_called:
            return 0
        if self.complete or not self.anchor.over:
            return FOREVER if self.complete else self.anchor.patience
        return self._until_look() if self._control.is_settled(region) else 0

    # -- the end ------------------------------------------------------------------------------

    def give_up(self) -> None:
        """A script that compiles nothing: there is nothing to wait for."""
        self._finish(complete=True)

    def write_lines(self) -> None:
        """Lines of the user's that call torch.compile, and which of them have run."""
        for line in self._lines.found(self._control.reached):
            self._parts.sources.keep(line["file"])
            self._parts.recorder.write("compile_line", **line)

    def _finish(self, *, complete: bool) -> None:
        """The plan is over: back to the script's own stance, count cheaply, stop if asked to."""
        parts = self._parts
        self.complete = True
        stopping = not self._config.run_to_end
        parts.timer.drop()
        parts.close_window()
        parts.timer.settle(wait=True)
        parts.stances.take(self.own_stance)
        self._enter(plan.Enter("tail"))
        parts.recorder.write("done", step=self.step, stopping=stopping, complete=complete)
        if stopping:
            self.write_lines()
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
