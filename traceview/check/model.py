"""The result of a check: plain data from which all formats are made.

Contract: docs/compare-and-check.md and ``traceview/check/schema.json``, the JSON of ``to_json``;
``FORMAT`` is raised when a key changes its meaning or is removed.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from traceview import contracts
from traceview.compare.model import Place, Subject

FORMAT = 1
Status = Literal["passed", "violated", "not_checked", "too_noisy"]


class Result(msgspec.Struct, frozen=True):
    """The result of one limit; a limit on findings has one result per finding that violates it.

    ``too_noisy``: it may as well be beyond the limit as within, which fails the check as well.
    ``wanted`` and ``found`` are in ``unit``; ``interval`` is the 95 % interval of ``found``.
    ``why``: the reason a limit could not be checked, or a remark. ``fingerprint`` stays the same
    when the code around it moves.
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
    """All results; ``script`` is the place to show for a result that has none of its own.

    ``unreadable``: pieces of the run's logs and traces that could not be read.
    """

    passed: bool
    run: Subject
    baseline: Subject | None
    results: tuple[Result, ...]
    cwd: str | None = None
    script: Place | None = None
    unreadable: int = 0

    def of(self, status: Status) -> tuple[Result, ...]:
        """The results with this status."""
        return tuple(result for result in self.results if result.status == status)


to_json, schema, write_schema = contracts.of(Checked, FORMAT, "traceview check", __file__)
