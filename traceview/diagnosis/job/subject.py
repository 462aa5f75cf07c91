"""What every part of the story is made of: one attempt, its tables and clock, ranks in words."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property
from pathlib import PurePath

import msgspec
import polars as pl

from traceview.derive.intervals import Interval
from traceview.derive.job.attempts import (
    Attempt,
    Span,
    attempt,
    in_order,
    ranges,
    with_member,
)
from traceview.diagnosis.focus import Code, Row
from traceview.diagnosis.job.model import Ranks
from traceview.tables import Tables
from traceview.words.names import at_line
from traceview.words.text import listed

#: Characters of a text that a report has room for, and of a value in it.
TEXT, VALUE = 400, 200
#: Ranges written out; the rest is counted.
_SHOWN = 6


class Subject(msgspec.Struct, frozen=True, dict=True):
    """One attempt of a job."""

    tables: Tables
    job: Attempt

    @classmethod
    def of(cls, tables: Tables, name: str) -> Subject:
        return cls(tables, attempt(tables, name))

    def frame(self, name: str) -> pl.DataFrame:
        """Rows of this attempt, with a column ``member``."""
        mine = self.tables[name].filter(pl.col("pass") == self.job.name)
        return mine if "member" in mine.columns else with_member(mine)

    def rows(self, name: str) -> list[Row]:
        """The same as dicts."""
        return self.frame(name).to_dicts()

    @cached_property
    def spans(self) -> dict[tuple[str, str], Span]:
        """(member, compile key) → the compile; of a forward and its backward the forward."""
        return {span.key: span for span in reversed(self.job.spans)}

    @cached_property
    def limits(self) -> set[tuple[str, Code]]:
        """(member, code object) that met the recompile limit."""
        return {(s.member, s.code) for s in self.job.spans if s.row["outcome"] == "limit"}

    @cached_property
    def waits(self) -> list[tuple[str, str, Interval]]:
        """(member that waited, member that it waited for, when); µs."""
        columns = ("waiting_member", "member", "started_us", "seconds")
        rows = self.frame("job_waits").select(columns).drop_nulls(columns[2:]).iter_rows()
        return [
            (waiting, member, (int(start), int(start + 1e6 * seconds)))
            for waiting, member, start, seconds in rows
        ]

    @cached_property
    def zero_us(self) -> float | None:
        """The job's first record of a compile; moments count from here."""
        return self.job.zero_us

    def at_s(self, time_us: float | None) -> float | None:
        """Seconds after the first compile began."""
        if time_us is None or self.zero_us is None:
            return None
        return (time_us - self.zero_us) / 1e6

    def ranks(self, members: str | list[str] | set[str] | None) -> Ranks:
        """In words; all of them by that name."""
        found = members_of(members) if isinstance(members, str | None) else members
        return ranks(found, len(self.job.members))


def members_of(text: str | None) -> list[str]:
    """The members that a table's ``0-16,18-63`` stands for."""
    found: list[str] = []
    for part in (text or "").split(","):
        first, dash, last = part.partition("-")
        if dash and first.isdigit() and last.isdigit():
            found += map(str, range(int(first), int(last) + 1))
        elif part:
            found.append(part)
    return found


def ranks(members: Collection[str], everyone: int | None = None) -> Ranks:
    """How many, and in words; ``everyone``: how many there are in all."""
    found = in_order(members)
    if everyone is not None and len(found) == everyone > 2:
        return Ranks(everyone, f"all {everyone:,} ranks")
    if not found:
        return Ranks(0, "no rank")
    parts = ranges(found).split(",")
    words = [part.replace("-", "–").removeprefix("p") for part in parts[:_SHOWN]]
    more = len(found) - len(members_of(",".join(parts[:_SHOWN])))
    if more:
        words.append(f"{more:,} more")
    one, several = ("rank", "ranks") if all(map(str.isdigit, found)) else ("process", "processes")
    noun = one if len(found) == 1 else several
    return Ranks(len(found), f"{noun} {listed(words)}")


def member_name(member: str) -> str:
    """``rank 17``; ``process 4711`` where its rank is not known."""
    return f"rank {member}" if member.isdigit() else f"process {member.removeprefix('p')}"


def where(file: str | None, line: int | None) -> str:
    """`` (model.py:26)``, or nothing."""
    return f" ({at_line(PurePath(file).name, line)})" if file and line is not None else ""
