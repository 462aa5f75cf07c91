"""Guards: the user's line behind each, and what a compile's guards cost, by what they read.

Torch's tree of them is timed with and without a branch.

``RootGuardManager.clone_manager`` (torch/csrc/dynamo/guards.cpp, which made it for recompiles)
copies the tree, and in it only the managers that a filter keeps. What a branch costs is the
difference between two copies, one with it and one without.
"""

from __future__ import annotations

import functools
import re
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from .compiles import current_compile_id
from .config import is_first_rank
from .recorder import Recorder

#: Branches that cost less of the whole set are neither taken apart further nor reported; nor
#: are those that cost so little that it may be the clock's error.
LEAST_SHARE, LEAST_US = 0.1, 1.0
#: A time is the median of this many evaluations.
EVALUATIONS = 7
#: Time for one set, and for all of a process. Torch's own timing of a set, which empties the
#: CPU's caches for it, takes as long.
SET_S, PROCESS_S = 0.03, 0.5

#: Torch's own, for its tests: called with each set, the locals and what built it.
_HOOK = "guard_manager_testing_hook_fn"
#: The manager of all globals: each of them is a branch like a local.
_GLOBALS = "G"
#: From here on ``GuardsSet.add`` (torch/_guards.py) notes it by itself.
_NOTED_SINCE = (2, 9)

Scope = Mapping[str, Any]


def time_guards(recorder: Recorder) -> None:
    """Write one ``guard_timing`` event a part, for each compile's guards as they are made.

    By torch's hook, if it is free; on the first rank only.
    """
    left_s = PROCESS_S

    def made(wrapper: Any, scope: Scope, _builder: object) -> None:
        nonlocal left_s
        if left_s <= 0:
            return
        begin = time.perf_counter()
        try:
            timed = _TimedSet(wrapper.root, scope, begin + min(SET_S, left_s))
            whole = Part(None, timed.tree.guards, timed.us)
            shared = {"compile_id": current_compile_id(), "evaluations": EVALUATIONS}
            for part in (whole, *timed.parts()):
                recorder.write("guard_timing", **part._asdict(), **shared)
        except Exception as error:  # noqa: BLE001 - the user's compile must go on
            left_s = 0.0
            recorder.note("cost of guards", error)
        left_s -= time.perf_counter() - begin

    guards: Any = sys.modules.get("torch._dynamo.guards")
    if getattr(guards, _HOOK, made) is None and is_first_rank():
        setattr(guards, _HOOK, made)


class Part(NamedTuple):
    """Guards, the source that all of them start from, and one evaluation's time."""

    source_name: str | None
    guards: int
    us: float


class _Branch(NamedTuple):
    """One guard manager: what it reads, guards on it and below, and the sources of all these.

    A guard counts as often as torch prints it: once for each thing that it checks.
    """

    source: str
    guards: int
    sources: frozenset[str]
    children: list[_Branch]


class _TimedSet:
    """One compile's guards, as all of them and by branches."""

    def __init__(self, root: Any, scope: Scope, until: float) -> None:
        self._root, self._scope, self._until = root, scope, until
        self.tree = _branch(root)
        whole = self._check(self.tree.sources)
        self.us = statistics.median(whole() for _ in range(EVALUATIONS))
        self._least_us = max(LEAST_US, LEAST_SHARE * self.us)

    def parts(self) -> list[Part]:
        """Branches that have no guard in common, those that cost enough; slowest first."""
        kept = frozenset([self.tree.source, _GLOBALS])
        tops = [
            top
            for child in self.tree.children
            for top in (child.children if child.source == _GLOBALS else [child])
        ]
        return sorted(self._parts(kept, tops), key=lambda part: -part.us)

    def _parts(self, kept: frozenset[str], branches: Sequence[_Branch]) -> list[Part]:
        """What costs enough in ``branches``, which hang on the sources ``kept``."""
        return self._halved(kept, self._check(kept), branches) if branches else []

    def _halved(
        self, kept: frozenset[str], bare: Callable[[], float], branches: Sequence[_Branch]
    ) -> list[Part]:
        """Those, halved until it is one branch, then its children; ``bare`` evaluates ``kept``."""
        if time.perf_counter() > self._until:
            return []
        full = self._check(kept.union(*(branch.sources for branch in branches)))
        us = statistics.median(full() - bare() for _ in range(EVALUATIONS))
        if us < self._least_us:
            return []
        if half := len(branches) // 2:
            halves = branches[:half], branches[half:]
            return [part for each in halves for part in self._halved(kept, bare, each)]
        # parts below the one branch, and what they leave of it
        (branch,) = branches
        inner = self._parts(kept | {branch.source}, branch.children)
        left_us = us - sum(part.us for part in inner)
        if left_us >= self._least_us:
            guards = branch.guards - sum(part.guards for part in inner)
            inner.append(Part(branch.source, guards, left_us))
        return inner

    def _check(self, kept: frozenset[str]) -> Callable[[], float]:
        """A function: evaluate the guards on these sources once, µs of host time."""
        copy = self._root.clone_manager(lambda manager: manager.get_source() in kept)

        def timed() -> float:
            begin = time.perf_counter_ns()
            copy.check(self._scope)
            return (time.perf_counter_ns() - begin) / 1000

        return timed


def _branch(manager: Any) -> _Branch:
    reached = list(manager.get_child_managers())
    if hasattr(manager, "get_key_value_managers"):  # of a dictionary, also its keys and values
        pairs = manager.get_key_value_managers().values()
        reached += [one for pair in pairs for one in pair if one is not None]
    children = [_branch(child) for child in reached]
    source = manager.get_source()
    own = sum(len(guard.verbose_code_parts()) for guard in manager.get_leaf_guards())
    return _Branch(
        source=source,
        guards=own + sum(child.guards for child in children),
        sources=frozenset([source]).union(*(child.sources for child in children)),
        children=children,
    )


def keep_guard_lines(torch: Any) -> None:
    """Let older versions note it too: logs of recompiles then have that line behind the guard."""
    release = re.match(r"(\d+)\.(\d+)", torch.__version__)
    guards: Any = sys.modules.get("torch._guards")
    if guards is None or release is None or (int(release[1]), int(release[2])) >= _NOTED_SINCE:
        return
    add = guards.GuardsSet.add

    @functools.wraps(add)
    def adding(self: Any, guard: Any, **options: Any) -> None:
        if guard.user_stack is None and guard not in self.inner:
            guard.user_stack = guards.TracingContext.extract_stack()
        add(self, guard, **options)

    guards.GuardsSet.add = adding
