"""The attempts of a job: who took part in one, and its compiles with the seconds of their own.

A member is a rank, or a process whose rank is not known.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any

import msgspec
import polars as pl

from traceview.derive.compile_costs import PHASES, exclusive_phases, with_nested
from traceview.derive.intervals import Interval, merge
from traceview.tables import Tables

Row = dict[str, Any]
#: A code object: name, file, first line.
Code = tuple[str | None, str | None, int | None]

_COLUMNS = (
    *("pass", "rank", "compile_key", "compile_id", "pid", "frame_compile_id", "is_forward"),
    *("co_name", "co_filename", "co_firstlineno", "user_file", "user_line", "user_function"),
    *("outcome", "fail_type", "fail_reason", "fail_user_file", "fail_user_line"),
    *("started_us", "duration_us", "dynamo_us", "aot_us", "inductor_us", "codegen_us"),
    *("backward_us", "autotune_us"),
)
#: Tables that show that a process took part.
_SEEN = ("compiles", "log_records", "graph_breaks", "recompiles")
#: Attempts of a job that only logs are left of: ``logs``, ``logs.2``, …
_ATTEMPT = re.compile(r"logs(?:\.(\d{1,6}))?")
_PROCESS = "p"


def attempts(tables: Tables) -> list[str]:
    """Passes that are attempts of a job, in order; none where the run was measured."""
    found = {name for name in tables["compiles"]["pass"].unique() if name}
    for name in ("jobs", "graph_breaks", "recompiles", "runs"):
        if tables.has(name):
            found |= {item for item in tables[name]["pass"].unique() if item}
    numbered = ((match, name) for name in found if (match := _ATTEMPT.fullmatch(name)))
    return [name for _, name in sorted((int(match[1] or 1), name) for match, name in numbered)]


def with_member(frame: pl.DataFrame) -> pl.DataFrame:
    """``frame`` with a column ``member``: the rank, or p4711 for a process without one."""
    rank = pl.col("rank").cast(pl.String)
    if not frame["rank"].has_nulls():
        return frame.with_columns(rank.alias("member"))
    pid = pl.col("pid") if "pid" in frame.columns else pl.lit(None, dtype=pl.Int64)
    if "compile_key" in frame.columns:
        named = pl.col("compile_key").str.extract(r":(\d+):[^:]*:[^:]*$", 1)
        pid = pl.coalesce(pid, named.cast(pl.Int64, strict=False))
    process = pl.lit(_PROCESS) + pl.coalesce(pid.cast(pl.String), pl.lit("?"))
    return frame.with_columns(pl.coalesce(rank, process).alias("member"))


def breaks(tables: Tables, name: str) -> pl.DataFrame:
    """``break_sites`` of an attempt with ``member``, a row for each compile (``compile_key``).

    Without those that ``fullgraph=True`` made errors: they are compiles that failed.
    """
    sites = tables["break_sites"].filter(pl.col("pass") == name, ~pl.col("refused"))
    return with_member(sites.explode("compile_keys").rename({"compile_keys": "compile_key"}))


def in_order(members: Iterable[str]) -> list[str]:
    """Ranks by number, then processes."""
    members = set(members)
    ranks = {member for member in members if member.isdigit()}
    return [*sorted(ranks, key=int), *sorted(members - ranks)]


def ranges(members: Iterable[str]) -> str:
    """``0-16,18-63,p4711``."""
    ordered = in_order(members)
    if len(ordered) == 1:  # most code objects of a job are compiled on one rank
        return ordered[0]
    ranks = [int(member) for member in ordered if member.isdigit()]
    others = [member for member in ordered if not member.isdigit()]
    breaks = [index for index, (one, other) in enumerate(pairwise(ranks), 1) if other != one + 1]
    runs = [
        ranks[start:end] for start, end in pairwise([0, *breaks, len(ranks)]) if ranks[start:end]
    ]
    parts = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    return ",".join((*parts, *others))


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
        """Host seconds of its compiles; None where no time was recorded."""
        return total(self.by_member.get(member, ()))


def code_columns(code: Code) -> Row:
    """The three columns that name a code object."""
    return dict(zip(("co_name", "co_filename", "co_firstlineno"), code, strict=True))


def compile_columns(job: Attempt, span: Span) -> Row:
    """The columns that name a compile of a job."""
    return {
        "pass": job.name,
        "rank": span.row["rank"],
        "compile_key": span.row["compile_key"],
        "compile_id": span.row["compile_id"],
        "member": span.member,
        **code_columns(span.code),
    }


def known(spans: list[Span]) -> Iterator[Interval]:
    """When they ran, where that is known."""
    return (interval for span in spans if (interval := span.interval) is not None)


def total(spans: Iterator[Span] | list[Span] | tuple[Span, ...]) -> float | None:
    """Their seconds; None where no time was recorded."""
    found = [span.seconds for span in spans if span.seconds is not None]
    return sum(found) if found else None


def phases_of(spans: list[Span]) -> dict[str, float]:
    """Exclusive phases: they add up to ``total``."""
    timed = [span for span in spans if span.seconds is not None]
    return {name: sum(span.phases[name] for span in timed) for name in PHASES}


def attempt(tables: Tables, name: str) -> Attempt:
    """The compiles of pass ``name``."""
    compiles = with_nested(tables["compiles"].filter(pl.col("pass") == name).select(_COLUMNS))
    rows = with_member(compiles).sort("started_us", nulls_last=True, maintain_order=True).to_dicts()
    by_member: dict[str, list[Span]] = defaultdict(list)
    counts: dict[tuple[str, Code], int] = defaultdict(int)
    for row in rows:
        code = (row["co_name"], row["co_filename"], row["co_firstlineno"])
        at = (row["member"], code)
        forward = row["is_forward"] is not False
        index = counts[at] if forward else max(0, counts[at] - 1)
        counts[at] += forward
        start, duration = row["started_us"], row["duration_us"]
        phases = exclusive_phases(row, row["nested_us"])
        span = Span(
            member=row["member"],
            code=code,
            index=index,
            again=(row["frame_compile_id"] or 0) > 0,
            forward=forward,
            started_us=start,
            ended_us=start + duration if start is not None and duration is not None else None,
            seconds=None if duration is row["dynamo_us"] is None else sum(phases.values()),
            phases=phases,
            row=row,
        )
        by_member[span.member].append(span)
    # Every rank that logged anything; processes without a rank only if they compiled.
    seen: set[str] = set()
    for table in _SEEN:
        named = [c for c in ("pass", "rank", "pid", "compile_key") if c in tables[table].columns]
        mine = tables[table].select(named).filter(pl.col("pass") == name)
        if table == "log_records":
            mine = mine.filter(pl.col("rank").is_not_null())
        seen |= set(with_member(mine)["member"].unique())
    members = in_order(seen)
    spans = {member: by_member[member] for member in members if member in by_member}
    return Attempt(name, [span for own in spans.values() for span in own], members, spans)
