"""Switching between the script's own stance, eager, and what is tried."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from .compiles import stance_in_force
from .recorder import Recorder
from .remedies import Trial
from .state import Control

STRICT = "fail_on_recompile"


class Stances:
    """Points our gates, and sets torch's stance too, for what is compiled without a gate."""

    def __init__(self, control: Control, recorder: Recorder) -> None:
        self._control = control
        self._recorder = recorder
        self._forced: Any = None
        self._user = "default"
        self._trial: Trial | None = None
        self._throughout: Trial | None = None

    @property
    def name(self) -> str:
        if self._trial is not None:
            return "trial"
        return "eager" if self._control.eager else "compiled"

    def take(self, stance: str, trial: Trial | None = None) -> None:
        """Switch; only at a step edge, outside every compiled call. ``trial``: to be on now."""
        if self._trial is not None:
            self._trial.off()
        self._trial = None
        if stance != "eager":
            self._release()  # a trial may put the script's own aside
        if trial is not None:
            trial.on()
        self._trial = trial
        tried = trial or (self._throughout if stance != "eager" else None)
        self._control.point(eager=stance == "eager", targets=tried.target if tried else None)
        if stance != "eager":
            return
        self.look()
        dynamo = sys.modules.get("torch._dynamo")
        if self._forced is None and hasattr(dynamo, "set_stance"):
            self._forced = dynamo.set_stance("force_eager")  # type: ignore[union-attr]

    def keep(self, trial: Trial) -> None:
        """From here on, whatever runs compiled runs with this trial on."""
        self._throughout = trial
        trial.on()
        self.take("compiled")

    @contextmanager
    def without_recompiles(self) -> Iterator[None]:
        """Compiled calls run what is compiled already, or raise; where this torch can do that."""
        self.take("compiled")
        dynamo: Any = sys.modules.get("torch._dynamo")
        own, strict = self._user, None
        if own == "default" and hasattr(dynamo, "set_stance"):
            strict, self._user = dynamo.set_stance(STRICT), STRICT
        try:
            yield
        finally:
            self.take("compiled")
            if strict is not None:
                strict.__exit__(None, None, None)
            self._user = own

    @property
    def in_force(self) -> str:
        """torch's own name of it, at this moment."""
        return stance_in_force()

    def look(self) -> None:
        """Record the script's own stance where it is a new one; a trial may put it aside."""
        own = self.in_force
        if self._forced is None and self._trial is None and own != self._user:
            self._user = own
            self._recorder.write("stance", stance=own)

    def abandon(self) -> None:
        """Back to the script's stance in a forked child, if it can be set there."""
        with suppress(RuntimeError):  # forked inside a compiled frame: it keeps what is in force
            self._release()

    def _release(self) -> None:
        """Back to the script's stance, unless the script has set another one meanwhile."""
        forced, self._forced = self._forced, None
        if forced is None:
            return
        current = getattr(sys.modules["torch._dynamo.eval_frame"], "_stance", None)
        if current is forced.stance:
            forced.__exit__(None, None, None)
        self.look()


class CodeUsed:
    """Whether compiled code ran in a call: Dynamo reports each frame whose guards it has checked.

    Through the hook of torch 2.8 that guard collectives use; where the script uses it, it is left
    alone. A frame that Dynamo compiles, or skips, is not reported.
    """

    def __init__(self) -> None:
        module = sys.modules.get("torch._C._dynamo.eval_frame")
        self._set_hook: Any = getattr(module, "set_guard_complete_hook", None)
        self._hits = 0

    def begin(self) -> bool:
        """Watch from here on; false where that can't be."""
        if self._set_hook is None:
            return False
        self._hits = 0
        theirs = self._set_hook(self._checked)
        if theirs is not None:
            self._set_hook(theirs)
        return theirs is None

    def end(self) -> bool:
        """Stop, and whether compiled code was found since."""
        self._set_hook(None)
        return self._hits > 0

    def _checked(self, hit: bool) -> bool:
        self._hits += hit
        return hit


def inside_compiled_frame() -> bool:
    """Whether Dynamo's frame hook is active on this thread, so that no stance can be set."""
    module = sys.modules.get("torch._C._dynamo.eval_frame")
    probe = getattr(module, "get_eval_frame_callback", None)
    return probe is not None and probe() not in (None, False)
