"""How many patterns Inductor's graph passes matched, by its own counter; no log of torch's tells.

``counters["inductor"]["pattern_matcher_count"]`` (torch/_inductor/pattern_matcher.py) counts for
the whole process, so it is read before and after each pass over a graph.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from .compiles import current_compile_id
from .importhook import after_import
from .recorder import Recorder

#: Our word for a pass: the function of torch/_inductor/compile_fx.py that makes it.
_PASSES = {
    "pre_grad": "_recursive_pre_grad_passes",
    "joint": "_recursive_joint_graph_passes",
    "post_grad": "_recursive_post_grad_passes",
}


class Passes:
    """Writes one ``graph_pass`` event a pass, once Inductor is imported."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._inside = False

    def listen(self) -> None:
        """Wait for Inductor; a pass that this torch does not have is left out."""
        after_import("torch._inductor.compile_fx", self._watch)

    def _watch(self, module: ModuleType) -> None:
        for stage, name in _PASSES.items():
            run = getattr(module, name, None)
            if callable(run):
                setattr(module, name, self._watched(stage, run))

    def _watched(self, stage: str, run: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(run)
        def call(*args: Any, **kwargs: Any) -> Any:
            if self._inside:  # of a graph within the graph
                return run(*args, **kwargs)
            before, self._inside = _matched(), True
            try:
                made = run(*args, **kwargs)
            finally:
                self._inside = False
            self._tell(stage, before, _matched())
            return made

        return call

    def _tell(self, stage: str, before: int | None, after: int | None) -> None:
        if before is not None and after is not None:
            self._recorder.write(
                "graph_pass", stage=stage, compile_id=current_compile_id(), patterns=after - before
            )


def _matched() -> int | None:
    counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", None)
    try:
        return int(counters["inductor"]["pattern_matcher_count"])  # type: ignore[index]
    except (TypeError, KeyError, ValueError):
        return None
