"""What the counting wrappers read on every call, and what is remembered of a region."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import repeat
from operator import length_hint
from typing import Any

FOREVER = 1 << 60
LONGEST_CALL_S = 5.0


@dataclass(eq=False, slots=True)
class Served:
    """Watched calls of a region, and those of them in which no compiled code ran."""

    calls: int = 0
    eager: int = 0
    eager_sizes: list[str] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Region:
    """One torch.compile call, as counted. ``left``: outermost calls until someone wants to know.

    Calls before those take one of ``passes`` and go straight through: see `Control.straight`. On a
    call that launches one kernel, an iterator's own count costs less than an attribute's.
    ``compile_calls`` is more than 1 where a line compiles one function again and again, and these
    took ``compile_calls_s`` of the host's time;
    ``made_after`` is what the line made of that function before, and its outermost calls by then;
    ``group`` is the first one that it made so: same arguments, same sizes of parameters.

    ``held``: wrappers that are alive. Holds no reference to the user's objects: it outlives them.
    ``torchscript``: class of the TorchScript that it is, or that is ``within`` it. ``modes``: what
    dispatch modes a call was made under first, and which call. ``served`` by stance, and by
    whether that was before.
    """

    region_id: int
    cudagraphs: bool = False
    group: int = -1
    left: int = 0
    counted: int = 0
    nested: int = 0
    passes: Iterator[bool] = field(default_factory=lambda: repeat(True, 0))
    passes_given: int = 0
    first_called: bool = False
    held: int = 0
    compile_calls: int = 1
    compile_calls_s: float = 0.0
    made_after: tuple[Region, int] | None = None
    methods_used: list[str] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    torchscript: str | None = None
    torchscript_within: bool = False
    modes: str | None = None
    modes_call: int | None = None
    served: dict[tuple[str, bool], Served] = field(default_factory=dict)

    @property
    def passes_left(self) -> int:
        return length_hint(self.passes)

    def grant(self, calls: int, *, straight: bool = False) -> None:
        """Let it make ``calls`` outermost calls before it reports again."""
        self.counted = self.outermost
        self.left, given = (0, calls) if straight else (calls, 0)
        self.passes, self.passes_given = repeat(True, given), given

    @property
    def remaining(self) -> int:
        """Outermost calls until it reports; below 0 where the one that runs has."""
        return self.passes_left + self.left

    @property
    def outermost(self) -> int:
        return self.counted + self.passes_given - self.passes_left

    @property
    def calls(self) -> int:
        return self.outermost + self.nested

    @property
    def alive(self) -> bool:
        """Whether what torch.compile gave back can be called."""
        return self.held > 0

    @property
    def collected_uncalled(self) -> bool:
        """Whether all that torch.compile gave back for it died without a call."""
        return self.held == 0 and self.calls == 0

    def collected(self) -> None:
        """A wrapper of its calls is gone."""
        self.held -= 1


class Gate:
    """Where a wrapper's calls go; lives and dies with the wrapper that owns it.

    ``how``: what torch.compile was called with.
    """

    __slots__ = ("__weakref__", "compiled", "how", "original", "region", "target")

    def __init__(
        self,
        region: Region,
        compiled: Callable[..., Any],
        original: Callable[..., Any],
        how: Mapping[str, Any] | None = None,
    ) -> None:
        self.region = region
        self.how = how or {}
        self.compiled = compiled
        self.original = original
        self.target = compiled


@dataclass(eq=False, slots=True)
class Control:
    """Shared by all wrappers. ``depth`` is 1 inside an outermost call of a region.

    ``flat`` until a call was seen inside another or in another thread, or an optimizer's step was
    seen inside a call. ``settled``: groups of regions whose calls are measured. ``reached``: lines
    that have called torch.compile. ``targets``: what each gate calls while a trial is on.

    Where the script calls from several of Python's threads it is ``threaded``: an outermost call in
    any of them is a step, and ``thread`` is None. ``inside`` are the threads that are in such a
    call. While one is ``at_edge`` it holds the ``lock``, and no other call begins. ``only``: the
    one thread whose calls count while it is profiled.
    """

    depth: int = 0
    thread: int | None = field(default_factory=lambda: threading.main_thread().ident)
    threaded: bool = False
    inside: set[int] = field(default_factory=set)
    at_edge: bool = False
    only: int | None = None
    edge_thread: int | None = None
    elsewhere: int = 0
    lock: Any = field(default_factory=threading.RLock)
    watching: bool = True
    eager: bool = False
    off: bool = False
    flat: bool = True
    compiles: int = 0
    compile_s: float = 0.0
    regions: list[Region] = field(default_factory=list)
    settled: set[int] = field(default_factory=set)
    reached: set[tuple[str, int]] = field(default_factory=set)
    gates: weakref.WeakSet[Gate] = field(default_factory=weakref.WeakSet)
    targets: Callable[[Gate], Callable[..., Any]] | None = None

    def joins(self, me: int) -> bool:
        """Whether a call of thread ``me``, another one than the steps' so far, is outermost.

        torch's own threads (autograd's) make no steps: Python does not know them. A script that
        has called nothing yet does so from a thread of its own: that one's calls are the steps.
        """
        if not self.threaded:
            if not _lives(me):
                return False
            if not self.region_calls:
                self.thread = me
                return False
            if self.depth and self.thread is not None:
                self.inside.add(self.thread)
            self.threaded, self.thread = True, None
        if self.only is not None and me != self.only:
            if _lives(self.only):
                return False
            self.only = None
        return me not in self.inside

    def calm(self) -> bool:
        """Wait until no thread is in a compiled call; false if one stays in it.

        The caller holds the lock, so that no call begins meanwhile.
        """
        end = time.monotonic() + LONGEST_CALL_S
        while self.inside and time.monotonic() < end:
            time.sleep(1e-4)
        return not self.inside

    def admit(self, gate: Gate) -> None:
        """A new gate, pointed where the stance in force wants it."""
        gate.target = self._target(gate)
        self.gates.add(gate)

    def point(
        self, *, eager: bool, targets: Callable[[Gate], Callable[..., Any]] | None = None
    ) -> None:
        """Point every gate at the original callable, at the compiled one, or at what is tried."""
        self.eager, self.targets = eager, targets
        for gate in list(self.gates):
            gate.target = self._target(gate)

    def _target(self, gate: Gate) -> Callable[..., Any]:
        if self.targets is not None:
            return self.targets(gate)
        return gate.original if self.eager else gate.compiled

    def add(self, region: Region) -> None:
        """One more region: with two, each call's depth and thread have to be checked."""
        self.regions.append(region)
        self._check_each()

    def nests(self) -> None:
        """A region's calls may lie within each other from now on."""
        self.flat = False
        self._check_each()

    def _check_each(self) -> None:
        """Take back the passes that were given: depth and thread of each call are looked at."""
        for region in self.regions:
            region.grant(region.remaining)

    @property
    def straight(self) -> bool:
        """Whether unwatched calls may pass without a check of depth and thread.

        The one region of a flat script has only outermost calls, so counting them is enough.
        """
        return self.flat and len(self.regions) == 1

    def grant(self, left: int) -> None:
        """Let every region make ``left`` outermost calls before it reports again.

        One that was never called, or only in another region's eager block, reports at once.
        """
        for region in self.regions:
            region.grant(left if region.first_called else 0, straight=self.straight)

    def switch_off(self) -> None:
        """Pass everything through for good (a forked child, or the end)."""
        self.off = True
        self.watching = self.threaded = False
        self.thread, self.depth = threading.get_ident(), 0
        self.point(eager=False)
        self.grant(FOREVER)

    @property
    def region_calls(self) -> int:
        return sum(region.calls for region in self.regions)

    def is_settled(self, region: Region) -> bool:
        """Whether nothing more is to be measured of its calls."""
        return region.group in self.settled

    @property
    def waiting(self) -> bool:
        """Whether there is something to call of which nothing is measured yet."""
        return any(each.alive and each.group not in self.settled for each in self.regions)


def _lives(ident: int) -> bool:
    return any(thread.ident == ident for thread in threading.enumerate())
