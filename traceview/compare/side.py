"""One of the runs of a comparison: its diagnosis, its sources, and counts only its tables have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Annotated, Any, TypeVar

import msgspec

from traceview.compare.model import Place, Subject
from traceview.derive.compile_costs import PHASES
from traceview.diagnosis.focus import Focus
from traceview.diagnosis.model import Diagnosis
from traceview.diagnosis.near import near
from traceview.rules.finding import Finding
from traceview.tables import Tables

#: Owners of the caches whose lookups are counted, and the possible results of a lookup.
CACHES, LOOK_UPS = ("fx_graph", "aotautograd"), ("hit", "miss", "bypass")
#: Longer files are not read: no function starts at line 50,000.
MOST_LINES = 50_000
#: A measurement: finite, which JSON's 1e400 and NaN are not.
Measurement = Annotated[float, msgspec.Meta(gt=-1e18, lt=1e18)]


class FrameRow(msgspec.Struct, frozen=True):
    """A row of ``compile_time.frames``: seconds of one function's compiles, by phase."""

    co_name: str | None = None
    co_filename: str | None = None
    co_firstlineno: int | None = None
    compiles: int | None = None
    total_s: Measurement | None = None
    dynamo_s: Measurement | None = None
    aot_s: Measurement | None = None
    inductor_s: Measurement | None = None
    codegen_s: Measurement | None = None

    @property
    def phases(self) -> dict[str, float]:
        """Seconds of the phases that were recorded."""
        seconds = ((phase, getattr(self, phase)) for phase in PHASES)
        return {phase: value for phase, value in seconds if value is not None}


class BlockPair(msgspec.Struct, frozen=True):
    """A row of ``pairs``: an eager and a compiled block; ``used``: it counts."""

    used: bool
    eager_ms: Measurement | None = None
    compiled_ms: Measurement | None = None
    speedup: Measurement | None = None


class Side(msgspec.Struct, frozen=True, dict=True):
    """``read`` gives the run's own copy of a file; ``caches`` are ``cache_counts``, if known."""

    name: str
    kind: str
    diagnosis: Diagnosis
    read: Callable[[str], str | None] = lambda _: None
    caches: Mapping[str, int] | None = None

    @cached_property
    def frames(self) -> tuple[FrameRow, ...]:
        """Compile seconds by function."""
        return tuple(_rows_of(self.diagnosis.compile_time.frames, FrameRow))

    @cached_property
    def pairs(self) -> tuple[BlockPair, ...]:
        """The block pairs that count."""
        return tuple(row for row in _rows_of(self.diagnosis.pairs, BlockPair) if row.used)

    @cached_property
    def _excerpts(self) -> dict[str, dict[int, str]]:
        """Lines that the diagnosis itself quotes: without the run, no other source is known."""
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

    def place_of(self, finding: Finding) -> Place | None:
        """The same of a finding."""
        at = finding.location
        return self.place(at.file, at.line, at.function) if at else None

    def subject(self) -> Subject:
        """The run as a comparison names it."""
        d = self.diagnosis
        return Subject(
            name=self.name,
            kind=self.kind,
            target=d.target,
            created=d.created,
            outcome=d.verdict.outcome,
            sentence=d.verdict.sentence,
            torch_version=value_text(d.environment.get("torch_version")),
            device_name=value_text(d.environment.get("device_name")),
            traceview=d.traceview,
        )


def cache_counts(tables: Tables) -> dict[str, int] | None:
    """Lookups in torch's caches of compiled graphs, as ``fx_graph_hit``; None: not recorded."""
    if not tables.has("cache_events"):
        return None
    counted = {f"{owner}_{event}": 0 for owner in CACHES for event in LOOK_UPS}
    for row in Focus.of(tables).rows(tables["cache_events"]):
        name = f"{row['cache']}_{row['event']}"
        if name in counted:
            counted[name] += 1
    return counted


def value_text(value: Any) -> str | None:  # noqa: ANN401 - any value of a JSON file
    """A fact of the environment as text; None stays None."""
    if value is None or isinstance(value, str):
        return value
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


Row = TypeVar("Row")


def _rows_of(rows: Iterable[Mapping[str, Any]], kind: type[Row]) -> Iterator[Row]:
    """``rows`` as structs; the model leaves their types open, and a row that does not fit is left
    out: a JSON file may hold anything there.
    """
    for row in rows:
        try:
            yield msgspec.convert(row, kind)
        except (msgspec.ValidationError, ValueError, OverflowError):
            continue
