"""What a gate found: plain data that every format is made of.

Contract: docs/compare-and-check.md and ``traceview/check/schema.json``; ``FORMAT`` is raised when a
key changes its meaning or goes away.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from traceview.compare.model import Place, Subject

FORMAT = 1
Status = Literal["passed", "violated", "not_checked"]


class Result(msgspec.Struct, frozen=True):
    """What became of one limit; a limit on findings has one for each finding that breaks it.

    ``wanted`` and ``found`` are in ``unit``; ``interval`` is that of ``found``, 95 %. ``why`` says
    what stood in the way of checking, or what of the limit is special. ``fingerprint`` stays the
    same while the code around it moves.
    """

    limit: str
    status: Status
    what: str
    unit: str | None = None
    sense: Literal["at most", "at least"] | None = None
    wanted: float | None = None
    found: float | None = None
    interval: tuple[float, float] | None = None
    baseline: float | None = None
    at_least: bool = False
    code: str | None = None
    rule: str | None = None
    severity: str | None = None
    what_to_do: str | None = None
    places: tuple[Place, ...] = ()
    why: str | None = None
    fingerprint: str = ""


class Checked(msgspec.Struct, frozen=True):
    """The whole gate; ``script`` is where a reader looks for what has no place of its own."""

    passed: bool
    run: Subject
    baseline: Subject | None
    results: tuple[Result, ...]
    cwd: str | None = None
    script: Place | None = None

    def of(self, status: Status) -> tuple[Result, ...]:
        """The results of one kind."""
        return tuple(result for result in self.results if result.status == status)
