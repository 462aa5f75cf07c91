"""What counts as a step: one region's outermost calls, or one optimizer's steps."""

from __future__ import annotations

import weakref
from typing import Any, Literal

from .state import Control, Region

CALL_PATIENCE = 50  # calls of other regions without one of the anchor's
OPTIMIZER_PATIENCE = 200  # more: an evaluation between two epochs is no new kind of step
MAX_MOVES = 4


class Anchor:
    """Chooses the anchor and notices when another one takes over.

    An optimizer becomes the anchor when two of its steps in a row had calls of a region before
    them; until then, and without one, the first region called is. A script that makes an optimizer
    for each trial or fold moves the anchor with each; when no more moves are left, the steps of
    those that come in the place of one that is gone are counted. A line that compiles its function
    again makes no new anchor: what it made last takes over, step by step.
    """

    def __init__(self, control: Control) -> None:
        self._control = control
        self.region: Region | None = None
        self.kind: Literal["call", "optimizer"] | None = None
        self.left = 0
        self.over = False
        self._optimizer: weakref.ref[Any] | None = None
        self._candidate: weakref.ref[Any] | None = None
        self._heir: weakref.ref[Any] | None = None
        self._hits = 0
        self._calls_seen = 0
        self._steps = 0
        self._progress_seen = 0
        self._others_seen = 0
        self._moves = 0
        self._region_id = 0
        self._former: set[int] = set()
        self._done: weakref.WeakSet[Any] = weakref.WeakSet()
        self._before: dict[int, int] = {}

    @property
    def region_id(self) -> int | None:
        """The anchor region's id, of several of a line the first's; None: it is an optimizer."""
        return self._region_id if self.region is not None else None

    @property
    def remaining(self) -> int:
        """Steps until the next edge; below 0 where the one that runs has begun with it."""
        return self.left if self.region is None else self.region.remaining

    @property
    def patience(self) -> int:
        """Outermost calls of other regions until the anchor is thought over; doubles each time."""
        base = OPTIMIZER_PATIENCE if self.kind == "optimizer" else CALL_PATIENCE
        return base << self._moves

    def called(self, region: Region) -> bool:
        """A region's outermost call begins; true if a new anchor begins with it."""
        if self.kind is None:
            return self._adopt(region)
        if region is self.region or self._control.is_settled(region):
            return False
        if self.over:
            return self._adopt(region)
        if self._is_successor(region):
            self._succeed(region)
            return False
        if self.region is not None and not self.region.alive:
            return self._adopt(region)
        if self._anchor_lives():
            return False
        others = self._others() - self._others_seen
        return others >= self.patience and self._adopt(region)

    def begin(self) -> None:
        """A plan begins with this anchor."""
        self._before = self._calls_by_group()

    def conclude(self, steps: int) -> None:
        """Its plan is complete after ``steps`` steps: settle what was called in most of them."""
        self.over = True
        if self._optimizer is not None and (optimizer := self._optimizer()) is not None:
            self._done.add(optimizer)
        if self.region is not None:
            self._control.settled.add(self.region.group)
        for group, calls in self._calls_by_group().items():
            if calls - self._before.get(group, 0) >= max(1, steps // 2):
                self._control.settled.add(group)
        self._calls_seen = self._unsettled_calls()

    def _calls_by_group(self) -> dict[int, int]:
        calls: dict[int, int] = {}
        for region in self._control.regions:
            calls[region.group] = calls.get(region.group, 0) + region.calls
        return calls

    def _unsettled_calls(self) -> int:
        regions = self._control.regions
        return sum(each.calls for each in regions if not self._control.is_settled(each))

    def is_optimizer(self, optimizer: object) -> bool:
        """Whether its steps are the steps; counts them."""
        if self._optimizer is None or self._optimizer() is not optimizer:
            return False
        self._steps += 1
        return True

    def stepped(self, optimizer: object) -> bool:
        """Another optimizer has stepped; true if it is the anchor from now on."""
        if optimizer in self._done:
            return False
        calls = self._unsettled_calls()
        worked = calls > self._calls_seen or (not self._control.regions and self._control.compiles)
        self._calls_seen = calls
        if self._candidate is None or self._candidate() is not optimizer:
            self._candidate, self._hits = weakref.ref(optimizer), 0
        self._hits = self._hits + 1 if worked else 0
        needed = 2
        if self.kind == "optimizer" and self._optimizer is not None:
            needed = 2 if self._optimizer() is None else self.patience
            if self._anchor_lives():
                self._hits = 0
        return self._hits >= needed and self._adopt(None, weakref.ref(optimizer))

    def inherits(self, optimizer: object) -> bool:
        """Whether it steps in the place of an anchor that is gone, when no more moves are left."""
        if self._moves <= MAX_MOVES or self._optimizer is None or self._optimizer() is not None:
            return False
        if self._heir is None or self._heir() is None:
            self._heir = weakref.ref(optimizer)
        return self._heir() is optimizer

    def _is_successor(self, region: Region) -> bool:
        """Whether the anchor's line made it again, and the anchor was not called since."""
        while region.made_after is not None:
            before, calls = region.made_after
            if before is self.region:
                return before.outermost == calls
            if before.outermost:
                return False
            region = before
        return False

    def _succeed(self, region: Region) -> None:
        """``region`` counts down in the anchor's place; the call that begins is one of those."""
        assert self.region is not None
        left = self.region.remaining - 1
        region.grant(left, straight=left > 0 and self._control.straight)
        self.region = region
        self._look()

    def _anchor_lives(self) -> bool:
        """Whether the anchor has moved on since this was last asked."""
        lives = self._progress() != self._progress_seen
        if lives:
            self._look()
        return lives

    def _look(self) -> None:
        self._progress_seen, self._others_seen = self._progress(), self._others()

    def _progress(self) -> int:
        return self._steps if self.region is None else self.region.outermost

    def _others(self) -> int:
        return sum(r.outermost for r in self._control.regions if r is not self.region)

    def _adopt(self, region: Region | None, optimizer: weakref.ref[Any] | None = None) -> bool:
        """Make one of them the anchor, while moves are left.

        A region that has not been one before, and what comes after a complete plan, is no move.
        """
        known = region is None or region.region_id in self._former
        self._moves += self.kind is not None and not self.over and known
        if self._moves > MAX_MOVES:
            return False
        self.over = False
        if region is not None:
            self._former.add(region.region_id)
        self.kind = "optimizer" if region is None else "call"
        self.region, self._optimizer = region, optimizer
        if region is not None:
            self._region_id = region.region_id
        self._look()
        return True
