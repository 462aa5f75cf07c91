"""The compiles of one attempt of a job, each with its rank and the seconds that are its own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import msgspec
import polars as pl

from traceview.derive.compile_costs import PHASES, exclusive_phases
from traceview.derive.intervals import Interval, merge
from traceview.derive.job.members import in_order, with_member
from traceview.tables import Tables

Row = dict[str, Any]
#: A code object: name, file, first line.
Code = tuple[str | None, str | None, int | None]

_COLUMNS = (
    "pass", "rank", "compile_key", "compile_id", "pid", "frame_compile_id", "is_forward",
    "co_name", "co_filename", "co_firstlineno", "user_file", "user_line", "user_function",
    "outcome", "fail_type", "fail_reason", "fail_user_file", "fail_user_line", "started_us",
    "duration_us", "dynamo_us", "aot_us", "inductor_us", "codegen_us", "backward_us", "autotune_us",
)  # fmt: skip
#: Tables that show that a process took part.
_SEEN = ("compiles", "log_records", "graph_breaks", "recompiles")


class Span(msgspec.Struct, frozen=True):
    """One compile: ``seconds`` without the compiles inside it; ``index``: n-th of its code.

    ``again``: a recompile. Two pieces of a function may share a name and a line, so not every later
    one is.
    """

    member: str
    code: Code
    index: int
    again: bool
    forward: bool
    started_us: float | None
    ended_us: float | None
    seconds: float | None
    phases: dict[str, float]
    row: Row

    @property
    def key(self) -> tuple[str, str]:
        """What names the compile; processes of several hosts may share an id."""
        return self.member, self.row["compile_key"]

    @property
    def interval(self) -> Interval | None:
        if self.started_us is None or self.ended_us is None:
            return None
        return int(self.started_us), int(self.ended_us)


class Attempt(msgspec.Struct, frozen=True, dict=True):
    """All compiles of one attempt, in order of start on each rank."""

    name: str
    spans: list[Span]
    members: list[str]
    by_member: dict[str, list[Span]] = {}

    @cached_property
    def intervals(self) -> dict[str, list[Interval]]:
        """Member → when it compiled, disjoint and in order."""
        return {member: merge(known(spans)) for member, spans in self.by_member.items()}

    @cached_property
    def zero_us(self) -> float | None:
        """When the first compile began."""
        starts = (span.started_us for span in self.spans if span.started_us is not None)
        return min(starts, default=None)

    def seconds(self, member: str) -> float | None:
        """Host seconds of its compiles; None where none of them tells."""
        return total(self.by_member.get(member, ()))


def known(spans: list[Span]) -> Iterator[Interval]:
    """When they ran, where that is known."""
    return (span.interval for span in spans if span.interval is not None)


def total(spans: Iterator[Span] | list[Span] | tuple[Span, ...]) -> float | None:
    """Their seconds; None where none of them tells."""
    found = [span.seconds for span in spans if span.seconds is not None]
    return sum(found) if found else None


def phases_of(spans: list[Span]) -> dict[str, float]:
    """Exclusive phases: they add up to ``total``."""
    timed = [span for span in spans if span.seconds is not None]
    return {name: sum(span.phases[name] for span in timed) for name in PHASES}


def attempt(tables: Tables, name: str) -> Attempt:
    """The compiles of pass ``name``."""
    compiles = tables["compiles"].filter(pl.col("pass") == name).select(_COLUMNS)
    rows = with_member(compiles).sort("started_us", nulls_last=True, maintain_order=True).to_dicts()
    by_member: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_member[row["member"]].append(row)
    members = _members(tables, name)
    spans = {member: list(_spans(by_member[member])) for member in members if member in by_member}
    return Attempt(name, [span for own in spans.values() for span in own], members, spans)


def _members(tables: Tables, name: str) -> list[str]:
    """Every rank that logged anything; processes without a rank only if they compiled."""
    seen: set[str] = set()
    for table in _SEEN:
        named = [c for c in ("pass", "rank", "pid", "compile_key") if c in tables[table].columns]
        mine = tables[table].select(named).filter(pl.col("pass") == name)
        if table == "log_records":
            mine = mine.filter(pl.col("rank").is_not_null())
        seen |= set(with_member(mine)["member"].unique())
    return in_order(seen)


def _spans(rows: list[Row]) -> Iterator[Span]:
    """Of one member, in order of start."""
    inside = _nested(rows)
    counts: dict[Code, int] = defaultdict(int)
    for number, row in enumerate(rows):
        code = (row["co_name"], row["co_filename"], row["co_firstlineno"])
        forward = row["is_forward"] is not False
        index = counts[code] if forward else max(0, counts[code] - 1)
        counts[code] += forward
        duration = row["duration_us"]
        phases = exclusive_phases(row, inside.get(number, 0.0))
        timed = duration is not None or row["dynamo_us"] is not None
        start = row["started_us"]
        end = start + duration if start is not None and duration is not None else None
        own = sum(phases.values()) if timed else None
        again = (row["frame_compile_id"] or 0) > 0
        yield Span(row["member"], code, index, again, forward, start, end, own, phases, row)


def _nested(rows: list[Row]) -> dict[int, float]:
    """Number of a row → time of the compiles directly inside it, µs."""
    inside: dict[int, float] = defaultdict(float)
    open_: list[tuple[int, float, int | None]] = []
    for number, row in enumerate(rows):
        start, duration = row["started_us"], row["duration_us"]
        if start is None or duration is None:
            continue
        open_ = [item for item in open_ if item[1] > start]
        around = [item for item in open_ if item[2] == row["pid"] and start + duration <= item[1]]
        if around:
            inside[around[-1][0]] += duration
        open_.append((number, start + duration, row["pid"]))
    return inside
