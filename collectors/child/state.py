"""What the counting wrappers read on every call, and what is remembered of a region."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from itertools import repeat
from operator import length_hint
from typing import Any

FOREVER = 1 << 60


class Region:
    """One torch.compile call, as counted. ``left``: outermost calls until someone wants to know.

    Calls before those take one of ``passes`` and go straight through: see `Control.straight`. On a
    call that launches one kernel, an iterator's own count costs less than an attribute's.
    ``compile_calls`` is more than 1 where a line compiles one function again and again;
    ``made_after`` is what the line made of that function before, and its outermost calls by then.

    Holds no reference to the user's objects: it outlives them.
    """

    __slots__ = (
        "collected_uncalled",
        "compile_calls",
        "counted",
        "cudagraphs",
        "first_called",
        "left",
        "made_after",
        "methods_used",
        "name",
        "nested",
        "passes",
        "passes_given",
        "region_id",
        "sizes",
    )

    def __init__(self, region_id: int, name: str, *, cudagraphs: bool = False) -> None:
        self.region_id = region_id
        self.name = name
        self.cudagraphs = cudagraphs
        self.left = 0
        self.counted = 0
        self.nested = 0
        self.first_called = False
        self.collected_uncalled = False
        self.compile_calls = 1
        self.made_after: tuple[Region, int] | None = None
        self.methods_used: list[str] = []
        self.sizes: dict[str, int] = {}
        self._give(0)

    def _give(self, passes: int) -> None:
        self.passes: Iterator[bool] = repeat(True, passes)
        self.passes_given = passes

    @property
    def passes_left(self) -> int:
        return length_hint(self.passes)

    def grant(self, calls: int, *, straight: bool = False) -> None:
        """Let it make ``calls`` outermost calls before it reports again."""
        self.counted = self.outermost
        self._give(calls if straight else 0)
        self.left = 0 if straight else calls

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


class Control:
    """Shared by all wrappers. ``depth`` is 1 inside an outermost call of a region.

    ``flat`` until a call was seen inside another or in another thread, or an optimizer's step was
    seen inside a call.
    """

    __slots__ = (
        "compiles",
        "depth",
        "eager",
        "flat",
        "gates",
        "off",
        "regions",
        "thread",
        "watching",
    )

    def __init__(self) -> None:
        self.depth = 0
        self.thread = threading.main_thread().ident
        self.watching = True
        self.eager = False
        self.off = False
        self.flat = True
        self.compiles = 0
        self.regions: list[Region] = []
        self.gates: weakref.WeakSet[Gate] = weakref.WeakSet()

    def admit(self, gate: Gate) -> None:
        """A new gate, pointed where the stance in force wants it."""
        gate.target = gate.original if self.eager else gate.compiled
        self.gates.add(gate)

    def point(self, *, eager: bool) -> None:
        """Point every gate at the original callables or at the compiled ones."""
        self.eager = eager
        for gate in list(self.gates):
            gate.target = gate.original if eager else gate.compiled

    def add(self, region: Region) -> None:
        """One more region: with two, each call's depth and thread have to be checked."""
        self.regions.append(region)
        for each in self.regions:
            each.grant(each.remaining)

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
        self.watching = False
        self.point(eager=False)
        self.grant(FOREVER)

    @property
    def region_calls(self) -> int:
        return sum(region.calls for region in self.regions)
