"""What a rule says: plain data, no behaviour beyond checking itself."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from traceview.derive.facts.places import Location as Location

Severity = Literal["error", "warning", "info"]
#: The gravest first.
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
Confidence = Literal["measured", "derived", "heuristic"]


class Cost(msgspec.Struct, frozen=True):
    """What it costs: milliseconds of every step, or seconds once; both None where not known.

    ``about`` says what the figure is ("host time between compiled regions, profiler window").
    """

    ms_per_step: float | None = None
    seconds: float | None = None
    about: str = ""


#: Costs of findings that time is not the matter of.
RESULT = Cost(about="results, not time")
THE_END = Cost(about="the script ends")


class Evidence(msgspec.Struct, frozen=True):
    """One row that proves it: the fact in words, the table, and the raw line where there is one."""

    text: str
    table: str
    raw_file: str | None = None
    raw_line: int | None = None


class Snippet(msgspec.Struct, frozen=True):
    """Something to paste: ``language`` is python, diff or shell."""

    # Rules write a diff of one line as ``- old`` and ``+ new``, without indentation, and SCRIPT for
    # the target in a command; traceview.diagnosis puts in the rest.

    language: Literal["python", "diff", "shell"]
    text: str


class Finding(msgspec.Struct, frozen=True):
    """One cause, where it is, what it costs, how sure, and what to do."""

    code: str
    rule: str
    severity: Severity
    title: str
    explanation: str
    cost: Cost
    confidence: Confidence
    location: Location | None
    evidence: tuple[Evidence, ...]
    what_to_do: str
    snippet: Snippet | None = None
    #: What ``traceview try`` can try of it: settings as ``--only`` takes them (docs/try.md), all of
    #: them together. Where there are none, a diff in ``snippet`` is tried.
    remedy: tuple[str, ...] = ()
    also_at: tuple[Location, ...] = ()
    #: The functions that it is about, ``co_filename:co_firstlineno``; empty: the whole script.
    about: frozenset[str] = frozenset()
    #: The library's line that the user's own line led to, where that is another one.
    inside: Location | None = None
    #: Whether it stands among the causes by its cost though it is information: most of a step goes
    #: there, without any sign that something is wrong.
    weighs: bool = False
    #: ms per step of what its rule explains that are due to it; None: as much as its cost.
    due_ms: float | None = None
    #: What follows from this cause; ``traceview.diagnosis`` fills it in.
    symptoms: tuple[Finding, ...] = ()
    #: What it costs with its symptoms, nothing counted twice; None where it has none.
    whole_cost: Cost | None = None

    @property
    def is_wrong(self) -> bool:
        """Whether it says that compiled results are wrong."""
        return self.cost == RESULT and self.severity != "info"

    def __post_init__(self) -> None:
        if not self.evidence:
            raise ValueError(f"{self.rule}: a finding without evidence")
