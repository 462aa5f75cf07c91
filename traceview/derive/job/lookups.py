"""Look-ups in Inductor's graph cache, by rank, with the components of their keys."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cached_property

import msgspec
import polars as pl

from traceview.derive.job.members import with_member
from traceview.derive.job.spans import Attempt, Row, Span, total
from traceview.tables import Tables

CACHE = "fx_graph"
_OUTCOMES = {"hit": "hit", "miss": "miss", "guard_miss": "miss"}


class LookUp(msgspec.Struct, frozen=True):
    """One look-up: ``nth`` of its compile, and where in the log it stands.

    ``seconds`` and ``inductor_s`` are of the whole compile, a backward that came later included.
    """

    pass_name: str
    member: str
    span: Span
    seconds: float | None
    inductor_s: float
    ended_us: float | None
    nth: int
    outcome: str
    key: str | None
    raw_file: str | None
    raw_line: int | None

    @property
    def place(self) -> tuple[object, ...]:
        """The same on every rank that runs the same program."""
        return (*self.span.code, self.span.index, self.nth)


def look_ups(tables: Tables, job: Attempt) -> Iterator[LookUp]:
    """Every look-up that hit or missed, of a compile that is known."""
    spans: dict[tuple[str, str], list[Span]] = defaultdict(list)
    for span in job.spans:
        spans[span.key].append(span)
    events = tables["cache_events"].filter(
        pl.col("pass") == job.name, pl.col("cache") == CACHE, pl.col("event").is_in(_OUTCOMES)
    )
    seen: dict[tuple[str, str], int] = defaultdict(int)
    # A look-up whose record is cut off has no key and can't be compared.
    ordered = with_member(events.drop_nulls("key")).sort("raw_file", "raw_line")
    for row in ordered.iter_rows(named=True):
        at = (row["member"], row["compile_key"])
        own = spans.get(at)
        if own:
            nth = seen[at]
            seen[at] += 1
            yield LookUp(
                pass_name=job.name,
                member=row["member"],
                span=own[0],
                seconds=total(own),
                inductor_s=sum(s.phases["inductor_s"] + s.phases["codegen_s"] for s in own),
                ended_us=max((s.ended_us for s in own if s.ended_us is not None), default=None),
                nth=nth,
                outcome=_OUTCOMES[row["event"]],
                key=row["key"],
                raw_file=row["raw_file"],
                raw_line=row["raw_line"],
            )


class Components:
    """Components of cache keys; the table keeps only what changed from one look-up to the next."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._made: dict[tuple[object, ...], dict[str, Row]] = {}

    @cached_property
    def _files(self) -> dict[tuple[object, ...], pl.DataFrame]:
        """(pass, log) → its components; made where keys differ at all."""
        known = self._tables["cache_components"].filter(pl.col("cache") == CACHE)
        known = known.select("pass", "raw_file", "pid", "raw_line", "name", "digest", "value")
        return known.partition_by("pass", "raw_file", as_dict=True)

    def of(self, look_up: LookUp) -> Mapping[str, Row]:
        """Name → digest and value; empty where they were not recorded."""
        at = (look_up.pass_name, look_up.raw_file, look_up.span.row["pid"], look_up.raw_line)
        if at not in self._made:
            self._made[at] = self._read(look_up)
        return self._made[at]

    def _read(self, look_up: LookUp) -> dict[str, Row]:
        frame = self._files.get((look_up.pass_name, look_up.raw_file))
        if frame is None or look_up.raw_line is None:
            return {}
        pid = pl.lit(look_up.span.row["pid"], dtype=pl.Int64)
        mine = frame.filter(pl.col("raw_line") <= look_up.raw_line, pl.col("pid").eq_missing(pid))
        # A process shows all components at its first look-up; that must be there.
        last = mine.sort("raw_line").unique("name", keep="last").drop_nulls("digest")
        return {row["name"]: row for row in last.iter_rows(named=True)}
