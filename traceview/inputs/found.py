"""What a search for logs gives."""

from __future__ import annotations

from dataclasses import dataclass, field

from traceview.inputs.source import Source
from traceview.inputs.streams import damage_of

NO_LOG = "nothing of torch's was seen in it"


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something that is not read, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Damaged:
    """A file, folder or archive that could not be looked at to its end; ``kind`` counts it."""

    name: str
    kind: str
    what: str


@dataclass(slots=True)
class Found:
    """What there is to read, in order of name, what is left out, and what could not be looked at.

    ``beginnings`` tells, by name, which sources may hold the same bytes.
    """

    sources: list[Source] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    damaged: list[Damaged] = field(default_factory=list)
    beginnings: dict[str, str] = field(default_factory=dict, repr=False)

    def add(self, source: Source, beginning: str) -> None:
        """A source, unless nothing of torch's is in it."""
        if source.kind == "unknown":
            self.skip(source.name, NO_LOG)
            return
        self.sources.append(source)
        self.beginnings[source.name] = beginning

    def skip(self, name: str, reason: str) -> None:
        """One thing left out."""
        self.skipped.append(Skipped(name, reason))

    def failed(self, name: str, error: Exception) -> None:
        """One of READ_ERRORS that came while ``name`` was looked at."""
        self.damaged.append(Damaged(name, *damage_of(error)))
