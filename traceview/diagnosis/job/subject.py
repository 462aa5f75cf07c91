"""What every part of the story is made of: one attempt, its tables and its clock."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import msgspec
import polars as pl

from traceview.derive.job.attempts import Attempt, Code, Span, attempt, with_member
from traceview.diagnosis.job.model import Ranks
from traceview.diagnosis.job.words import members_of, ranks
from traceview.tables import Tables

Row = dict[str, Any]


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
