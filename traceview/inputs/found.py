"""What a search for logs gives."""

from __future__ import annotations

import msgspec

from traceview.inputs.source import Source
from traceview.inputs.streams import damage_of

NO_LOG = "nothing of torch's was seen in it"


class Skipped(msgspec.Struct, frozen=True):
    """Something that is not read, and why."""

    name: str
    reason: str


class Damaged(msgspec.Struct, frozen=True):
    """A file, folder or archive that could not be looked at to its end; ``kind`` counts it."""

    name: str
    kind: str
    what: str


class Found(msgspec.Struct):
    """What there is to read, in order of name, what is left out, and what could not be looked at.

    ``beginnings`` tells, by name, which sources may hold the same bytes.
    """

    sources: list[Source] = []
    skipped: list[Skipped] = []
    damaged: list[Damaged] = []
    beginnings: dict[str, str] = {}

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
