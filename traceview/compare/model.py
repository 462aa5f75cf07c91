"""What changed from one run to another: plain data from which all forms of a comparison are made.

Contract: docs/compare-and-check.md and ``traceview/compare/schema.json``, the JSON of ``to_json``;
``FORMAT`` is raised when a key changes its meaning or is removed. ``before`` is the run named
first, ``after`` the second. None means "not recorded" or, for a place or a cost, that this side has
no such thing.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from traceview import contracts
from traceview.rules.finding import Cost

FORMAT = 1

Outcome = Literal[
    "faster", "slower", "no_difference_shown", "other_conditions", "not_measured", "failed"
]
FigureChange = Literal["better", "worse", "changed", "same", "within_noise", "not_recorded"]
#: For things that one side may lack; unknown: the other side could not have seen it.
ThingChange = Literal["came", "went", "grew", "shrank", "same", "unknown"]


class Place(msgspec.Struct, frozen=True):
    """A line; ``file`` as seen from the working directory, ``path`` as it was recorded."""

    file: str
    line: int | None
    function: str | None
    path: str


class Subject(msgspec.Struct, frozen=True):
    """One of the two runs; ``kind`` is run, postmortem or diagnosis (a JSON file)."""

    name: str
    kind: str
    target: str
    created: str | None
    outcome: str
    sentence: str
    torch_version: str | None
    device_name: str | None
    traceview: str


class FigurePair(msgspec.Struct, frozen=True):
    """One figure of both runs; ``ratio``: after / before; ``basis``: why a change is (not) claimed.

    ``better``: the better direction; None: neither. ``at_least``: the report's list was cut there.
    """

    key: str
    label: str
    unit: str
    better: Literal["lower", "higher"] | None
    before: float | None
    after: float | None
    before_interval: tuple[float, float] | None
    after_interval: tuple[float, float] | None
    ratio: float | None
    ratio_interval: tuple[float, float] | None
    change: FigureChange
    basis: str
    at_least: bool = False


class MatchedPair(msgspec.Struct, frozen=True, kw_only=True):
    """Something that both runs may have: where, what became of it, and how it was recognised."""

    before: Place | None
    after: Place | None
    change: ThingChange
    moved: bool
    matched_by: str | None


class ThingPair(MatchedPair, frozen=True, kw_only=True):
    """The same of what the compiler did, of which a job knows the ranks."""

    before_ranks: int | None = None
    after_ranks: int | None = None


class FramePair(ThingPair, frozen=True, kw_only=True):
    """Compile seconds of one function (all its compiles) by phase; phases add up.

    ``before_ranks`` and ``after_ranks``, here and below: where two jobs are compared, on how many
    ranks it occurs; the figures are then totals over them. Otherwise null.
    """

    name: str
    before_seconds: float | None
    after_seconds: float | None
    before_compiles: int | None
    after_compiles: int | None
    before_phases: dict[str, float]
    after_phases: dict[str, float]


class CausePair(MatchedPair, frozen=True, kw_only=True):
    """One finding; ``symptom_of`` is the code and title of the cause that it follows from."""

    rule: str
    code: str
    title: str
    what_to_do: str
    before_severity: str | None
    after_severity: str | None
    before_cost: Cost | None
    after_cost: Cost | None
    why: str
    symptom_of: str | None


class BreakPair(ThingPair, frozen=True, kw_only=True):
    """One place where graphs break; ``times``: compiles that hit it."""

    reason: str
    gb_id: str | None
    before_times: int | None
    after_times: int | None


class ChainPair(ThingPair, frozen=True, kw_only=True):
    """Recompiles of one function; ``guards``: the sources whose guards failed."""

    name: str
    before_recompiles: int | None
    after_recompiles: int | None
    before_guards: tuple[str, ...]
    after_guards: tuple[str, ...]
    before_limit_hit: bool
    after_limit_hit: bool


class CategoryPair(msgspec.Struct, frozen=True):
    """Time of a compiled step in one category; from one profiler window each, so no interval."""

    category: str
    kind: str
    before_ms: float | None
    after_ms: float | None


class Difference(msgspec.Struct, frozen=True):
    """One fact, variable or setting that differs; null: not set, or not recorded."""

    section: str
    name: str
    before: str | None
    after: str | None


class Comparison(msgspec.Struct, frozen=True):
    """Everything that a comparison says; ``sentence`` is the ``headline`` and the ``remarks``."""

    outcome: Outcome
    sentence: str
    headline: str
    remarks: tuple[str, ...]
    before: Subject
    after: Subject
    figures: tuple[FigurePair, ...]
    phases: tuple[FigurePair, ...]
    frames: tuple[FramePair, ...]
    causes: tuple[CausePair, ...]
    breaks: tuple[BreakPair, ...]
    recompiles: tuple[ChainPair, ...]
    categories: tuple[CategoryPair, ...]
    environment: tuple[Difference, ...]
    notes: tuple[str, ...] = ()


to_json, schema, write_schema = contracts.of(Comparison, FORMAT, "traceview comparison", __file__)
