"""One of the runs of a comparison: its diagnosis, its sources, what only its tables know."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import msgspec

from traceview.compare.model import Place, Subject
from traceview.diagnosis.focus import Focus
from traceview.diagnosis.model import Diagnosis
from traceview.diagnosis.near import near
from traceview.tables import Tables

#: Owners of the caches whose look-ups are counted, and what may come of one.
CACHES, LOOK_UPS = ("fx_graph", "aotautograd"), ("hit", "miss", "bypass")
#: Longer files are not read: nobody's function lies in line 50,000.
MOST_LINES = 50_000


class Side(msgspec.Struct, frozen=True, dict=True):
    """``read`` gives the run's own copy of a file; ``caches`` are ``cache_counts``, if known."""

    name: str
    kind: str
    diagnosis: Diagnosis
    read: Callable[[str], str | None] = lambda _: None
    caches: Mapping[str, int] | None = None

    @cached_property
    def _excerpts(self) -> dict[str, dict[int, str]]:
        """Lines that the diagnosis itself quotes: all that is known of a source without the run."""
        quoted: dict[str, dict[int, str]] = {}
        for excerpt in self.diagnosis.excerpts:
            quoted.setdefault(excerpt.file, {}).update(dict(excerpt.lines))
        return quoted

    @cached_property
    def _texts(self) -> dict[str, list[str] | None]:
        return {}

    def lines(self, file: str) -> list[str] | None:
        """The lines of the run's own copy of ``file``; None where it has none."""
        if file not in self._texts:
            text = self.read(file)
            lines = None if text is None else [line.rstrip() for line in text.split("\n")]
            self._texts[file] = lines if lines is None else lines[:MOST_LINES]
        return self._texts[file]

    def text(self, file: str | None, line: int | None) -> str | None:
        """One line of source without its indentation; None where it is not known."""
        if file is None or line is None:
            return None
        lines = self.lines(file)
        if lines is None:
            return (self._excerpts.get(file, {}).get(line) or "").strip() or None
        return lines[line - 1].strip() or None if 1 <= line <= len(lines) else None

    def place(self, file: str | None, line: int | None, function: str | None) -> Place | None:
        """The place as a comparison shows it; None where no file is known."""
        return None if not file else Place(near(file, self.diagnosis), line, function, file)

    def subject(self) -> Subject:
        """What a comparison says of the run itself."""
        d = self.diagnosis
        return Subject(
            name=self.name,
            kind=self.kind,
            target=d.target,
            created=d.created,
            outcome=d.verdict.outcome,
            sentence=d.verdict.sentence,
            torch_version=_word(d.environment.get("torch_version")),
            device_name=_word(d.environment.get("device_name")),
            traceview=d.traceview,
        )


def cache_counts(tables: Tables) -> dict[str, int] | None:
    """Look-ups in torch's caches of compiled graphs, as ``fx_graph_hit``; None: not recorded."""
    if not tables.has("cache_events"):
        return None
    counted = {f"{owner}_{event}": 0 for owner in CACHES for event in LOOK_UPS}
    for row in Focus.of(tables).rows(tables["cache_events"]):
        name = f"{row['cache']}_{row['event']}"
        if name in counted:
            counted[name] += 1
    return counted


def _word(value: Any) -> str | None:  # noqa: ANN401 - any value of a JSON file
    return None if value is None else str(value)
