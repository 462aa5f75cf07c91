"""One collected process: the parts put together, and the end of the process."""

from __future__ import annotations

import atexit
import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .clock import BlockTimer, gpu_in_use
from .compiles import Compiles, count_patterns
from .config import Config, is_first_rank
from .driver import Driver, Parts
from .endings import described, ended_by_exception, uncaught
from .environment import compiling_disabled, write_environment
from .frames import Frames, Sources
from .gate import region_of
from .guards import keep_guard_lines, time_guards
from .listener import Calls, on_optimizer_step
from .logs import quiet_stderr
from .masks import Masks
from .memory import Memory
from .modules import EagerCopies, LateHooks, LostWeights
from .recorder import Recorder, said
from .regions import Regions
from .remedies import Trials
from .serving import Serving
from .stances import Stances
from .state import Control
from .taken import Taker
from .target import Compiling
from .threads import Loaders, Threads
from .weights import FrozenWeights
from .window import Window

MOST_REPLAY_S = 10.0
MOST_COMPILE_S = 60.0  # of a trial, while calls are replayed
LEAST_LEFT_S = 3.0


class Session:
    """Made right after the script's ``import torch``."""

    def __init__(self, config: Config, recorder: Recorder, torch: Any) -> None:
        control = Control()
        frames = Frames(torch.__file__, config.script_root, str(config.run))
        sources = Sources(config.run, recorder, frames)
        memory = Memory(torch, recorder)
        trials = Trials(torch, frames, control, recorder, memory, config)
        self._config = config
        self._environment_written = False
        self._trial_failed = False
        self._parts = Parts(
            torch=torch,
            control=control,
            recorder=recorder,
            frames=frames,
            sources=sources,
            stances=Stances(control, recorder),
            trials=trials,
            memory=memory,
            timer=BlockTimer(torch, recorder, memory, frames),
            window=Window(torch, recorder, frames, sources),
            threads=Threads(recorder, frames, sources),
            compiles=Compiles(control, recorder, frames, sources, lambda: self._driver.step_now),
            hooks=LateHooks(control, recorder, frames, sources, lambda: self._driver.step_now),
            copies=EagerCopies(control, recorder, frames, sources),
            loads=LostWeights(control, recorder, frames, sources),
            frozen=FrozenWeights(control, recorder, frames, sources, lambda: self._driver.step_now),
            masks=Masks(torch),
        )
        self._driver = Driver(config, self._parts, self._steady)
        self._regions = Regions(torch, control, recorder, frames, sources)
        self._compiling = Compiling(config, self._parts, self._regions)
        self._began = time.monotonic()
        self._taker = None
        self._firsts = keep = None
        if config.compare_outputs and config.record_mb:
            from .recording import Firsts

            self._firsts = Firsts(torch, frames)
            keep = self._firsts.keep
        whole = config.compare_outputs or config.mode == "trials"
        checks = config.mode == "paired" or config.check_results
        if whole or (checks and config.nproc == 1):
            self._taker = Taker(
                torch,
                frames,
                sparing=not whole,
                others=config.mode == "trials",
                on_first=keep,
            )
        self._calls = Calls(self._parts, self._driver, self._taker)
        self._serving: Any = None
        if config.serve_calls:
            limits = config.serve_calls, config.serve_seconds
            self._serving = Serving(self._parts, self._driver, *limits)
        elif config.record_steps:
            from .recording import Curve

            self._serving = Curve(self._parts, self._driver, config)

    def begin(self) -> None:
        """Patch torch.compile, listen to optimizers, quieten stderr, watch for the end."""
        parts = self._parts
        atexit.register(self._end)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)
        self._try("filtering torch's logs on stderr", lambda: quiet_stderr(self._config.user_logs))
        self._regions.on_first = self._first_region
        self._regions.install(self._serving or self._calls)
        if self._config.pass_name == "cold" or self._config.compile_target:
            self._try("looking for what to compile", self._compiling.begin)
        if self._serving is None:
            more = parts.frames, parts.sources, lambda: self._driver.step_now
            self._try("loaders", Loaders(parts.control, parts.recorder, *more).watch)
            on_optimizer_step(parts.torch, self._calls.optimizer_stepped)
            self._try("weights that are loaded", lambda: parts.loads.watch(parts.torch))
        else:
            parts.control.watching = False  # every call is seen all the same
        if self._config.record_steps:
            self._serving.begin()
            on_optimizer_step(parts.torch, self._serving.stepped)

    def _first_region(self) -> None:
        """Dynamo has been imported by now."""
        self._compiling.script_compiles()
        self._parts.compiles.listen()
        recorder = self._parts.recorder
        self._try("counting patterns of graph passes", lambda: count_patterns(recorder))
        if self._config.pass_name == "cold":
            self._try("cost of guards", lambda: time_guards(recorder))
        self._try("source lines of guards", lambda: keep_guard_lines(self._parts.torch))
        self._parts.compiles.watch_resets()
        if self._serving is None:
            self._try("hooks of modules", lambda: self._parts.hooks.watch(self._parts.torch))
            self._try("copies of modules", lambda: self._parts.copies.watch(self._parts.torch))
            self._try("frozen weights", lambda: self._parts.frozen.watch(self._parts.torch))
            self._try("weights that are loaded", self._parts.loads.hide)
        if self._config.mode == "eager":
            self._parts.stances.take("eager")
        elif self._config.throughout:
            self._parts.trials.keep(self._parts.stances)
        disabled = compiling_disabled()
        if disabled is not None:
            recorder.write("disabled", by=disabled)

    def _steady(self) -> None:
        """Write what is known by now: the environment once, each region's counts."""
        torch, recorder = self._parts.torch, self._parts.recorder
        if not self._environment_written:
            self._environment_written = True
            ours = frozenset(self._config.variables)
            self._try("environment", lambda: write_environment(torch, recorder, ours))
        for region in self._parts.control.regions:
            recorder.write(
                "region_end",
                region_id=region.region_id,
                calls=region.calls,
                outermost_calls=region.outermost,
                methods_used=region.methods_used,
                collected_uncalled=region.collected_uncalled,
                is_anchor=region.region_id == self._driver.anchor.region_id,
                compile_calls=region.compile_calls,
                compile_calls_ms=region.compile_calls_s * 1e3,
                input_sizes=list(region.sizes.items()),
                torchscript=region.torchscript,
                torchscript_within=region.torchscript_within,
                dispatch_modes=region.modes,
                dispatch_modes_call=region.modes_call,
                served=[
                    [stance, after, each.calls, each.eager, each.eager_sizes]
                    for (stance, after), each in region.served.items()
                ],
            )

    def _try(self, what: str, act: Callable[[], None]) -> None:
        try:
            act()
        except Exception as error:  # noqa: BLE001 - the user's script must run whatever fails here
            self._parts.recorder.note(what, error)

    # -- the end ------------------------------------------------------------------------------

    def _forked(self) -> None:
        """In a forked child: write nothing, pass everything through."""
        self._parts.recorder.close()
        self._compiling.stop()
        self._parts.control.switch_off()
        self._parts.stances.abandon()

    def _end(self) -> None:
        """At exit: what is still open, the exception that got here, totals."""
        parts, driver = self._parts, self._driver
        if parts.control.off:
            return
        steps = driver.steps_seen
        serving = self._serving
        if serving is not None:
            self._try("the end of serving", serving.finish)
        parts.control.off = True
        self._try("looking for what to compile", self._compiling.finish)
        self._try("profiler window", lambda: parts.close_window(step_ended=False))
        self._write_error()
        if not parts.control.regions and not driver.complete:
            self._try("lines that compile", driver.write_lines)
        self._try("copies of modules", parts.copies.finish)
        self._try("frozen weights", parts.frozen.finish)
        self._try("weights that were loaded", parts.loads.finish)
        self._try("last blocks", parts.timer.finish)
        self._try("the trial under way", self._end_trial)
        parts.stances.look()
        self._steady()
        parts.recorder.flush()
        parts.recorder.write(
            "end", steps_seen=steps, step_kind=driver.anchor.kind, phase=driver.phase
        )
        self._check_results()
        self._replay_calls()
        self._try("the trial that is left", self._leave_trial)
        self._try("hooks of modules", parts.hooks.finish)
        self._measure_device()
        self._compare_outputs()

    def _check_results(self) -> None:
        """With the script's objects as it left them: do compiled code and eager still agree?"""
        from .own_code import CHECK, CHECK_S, check_results

        config, taker = self._config, self._taker
        wanted = config.mode == "paired" or config.compare_outputs
        wanted = wanted and config.pass_name == "cold" and self._serving is None
        wanted = wanted or config.check_results
        if taker is None or not wanted or config.nproc > 1 or self._driver.several_threads:
            return
        left_s = self._left_s
        if compiling_disabled() or ended_by_exception() or left_s < LEAST_LEFT_S:
            return
        with self._last("checking", CHECK):
            check_results(self._parts, taker, min(CHECK_S, left_s / 4))

    @property
    def _left_s(self) -> float:
        return (self._config.timeout_s or math.inf) - (time.monotonic() - self._began)

    def _replay_calls(self) -> None:
        """Where the script ended before its speedup was known: go on with copies of its calls."""
        from .repeat import WHAT, replay_calls, unmeasured

        driver, config, taker = self._driver, self._config, self._taker
        self._parts.trials.leave(driver.step)
        trials = self._parts.trials.left if config.mode == "trials" else []
        wanted = (config.mode == "paired" or trials) and unmeasured(self._parts.control)
        # An exception or Ctrl-C is the verdict's first line.
        if not wanted or driver.complete or compiling_disabled() or ended_by_exception():
            return
        left_s, recorder = self._left_s, self._parts.recorder
        if taker is None:
            recorder.note(WHAT, "only runs with one rank are replayed")
        elif driver.anchor.kind == "optimizer" and not driver.anchor.over:
            recorder.note(WHAT, "its steps end with an optimizer's, which would change the weights")
        elif driver.several_threads:
            recorder.note(WHAT, "its steps are calls of several threads")
        elif left_s < LEAST_LEFT_S:
            recorder.note(WHAT, "the time limit is near")
        else:
            most_s = MOST_REPLAY_S + len(trials) * (config.trial_seconds + MOST_COMPILE_S)
            with self._last("replay", WHAT):
                # The rest is for comparing outputs; trials are all that their process is for.
                part_s = left_s / (2 if trials else 4)
                replay_calls(self._parts, config, driver, taker, min(most_s, part_s))

    def _compare_outputs(self) -> None:
        """After everything else: the user's code is run again, on copies."""
        taker, recorder = self._taker, self._parts.recorder
        trials = self._parts.trials.measured
        if taker is None or not (self._config.compare_outputs or trials):
            return
        what = "comparison of outputs"  # the rules read it: traceview/rules
        if compiling_disabled():
            recorder.note(what, "compilation is switched off")
        elif ended_by_exception() and not self._trial_failed:
            recorder.note(what, "the script ended with an exception")
        else:
            if self._firsts is not None:
                with self._last("comparing", "recording of numbers"):
                    from .recording import record_calls

                    record_calls(self._parts, self._config, self._firsts)
            if self._config.nproc > 1:
                recorder.note(what, "only runs with one rank are compared")
                return
            with self._last("comparing", what):
                from .alone import compare_functions
                from .trial import compare_outputs

                config = self._config
                folder = config.run / "accuracy"
                compare_outputs(self._parts, taker, trials, bisect_s=config.bisect_s, folder=folder)
                compare_functions(self._parts, trials)

    def _measure_device(self) -> None:
        """What the device can do, after a script that came to its end."""
        parts, config = self._parts, self._config
        compiled = any(region.first_called for region in parts.control.regions)
        wanted = config.pass_name == "cold" and config.profile and compiled
        if not (wanted and is_first_rank()) or ended_by_exception():
            return
        with self._last("ceilings", "ceilings of the device"):
            from .ceilings import write_ceilings

            device = parts.timer.device or gpu_in_use(parts.torch)
            write_ceilings(parts.torch, parts.recorder, device=device)
        with self._last("ceilings", "trials of shapes"):
            from .shape_trials import write_shape_trials

            write_shape_trials(parts.torch, parts.recorder, parts.masks, device=device)
        with self._last("ceilings", "other forms of operators"):
            from .form_trials import write_form_trials

            write_form_trials(parts.torch, parts.recorder, device=device)

    @contextmanager
    def _last(self, phase: str, what: str) -> Iterator[None]:
        """What is done when the script has ended, and imported only then; Ctrl-C ends it."""
        self._parts.recorder.write("phase", phase=phase, detail=None, step=None, stance=None)
        try:
            yield
        except KeyboardInterrupt:
            self._parts.recorder.note(what, "interrupted")
        except Exception as error:  # noqa: BLE001 - the script's own ending must go on
            self._parts.recorder.note(what, error)

    def _end_trial(self) -> None:
        """What the script died of while something was tried is that trial's end."""
        error, trials = uncaught(), self._parts.trials
        if trials.all_timed:
            trials.end(self._driver.step)
        elif error is not None and self._parts.stances.name == "trial":
            trials.end(self._driver.step, state="failed", why=said(error))
            self._trial_failed = True
        self._parts.stances.take("compiled")

    def _leave_trial(self) -> None:
        """It has a part of its pairs of blocks: another process measures the rest."""
        trials = self._parts.trials
        if trials.current is not None and self._parts.timer.pairs:
            trials.end(self._driver.step, state="unfinished")

    def _write_error(self) -> None:
        """The exception that got here, with the stance and phase in which it was raised."""
        error = uncaught()
        if error is None:
            return
        keys = described(error, self._parts.frames)
        for entry in keys["stack"]:
            self._parts.sources.keep(entry["file"])
        region = region_of(error.__traceback__)
        self._parts.recorder.write(
            "error",
            **keys,
            stance=self._parts.stances.name,
            phase=self._driver.phase,
            region_id=region and region.region_id,
        )
