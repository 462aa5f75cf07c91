"""Which process a diagnosis is about, and rows of its tables as structs of the contract."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar, get_origin

import msgspec
import polars as pl
from msgspec.structs import fields

from traceview.derive.callables import MEASURED_PASS
from traceview.derive.facts.rows import frame
from traceview.tables import Tables, having

Row = dict[str, Any]
#: A code object: name, file, first line.
Code = tuple[str | None, str | None, int | None]
S = TypeVar("S", bound=msgspec.Struct)
Text = TypeVar("Text", str, str | None)

STANCES = ("eager", "compiled")
_NO_PID = pl.lit(None, dtype=pl.Int64).alias("pid")

#: What a field that is never null holds where the table has null, by its name or else its type.
_NAMED = {
    "category": "other",
    "kind": "other",
    "clock": "host",
    "confidence": "derived",
    "times": 1,
}
_TYPED: dict[object, object] = {str: "?", float: 0.0, int: 0, bool: False, tuple: ()}


class Focus(msgspec.Struct, frozen=True):
    """One process of one pass; ``pid`` is None where only logs are there and all of them count."""

    pass_name: str
    rank: int | None
    pid: int | None

    @classmethod
    def of(cls, tables: Tables) -> Focus:
        """The process of the verdict; for logs alone, the last start of the job and one rank.

        Of several it is the lowest rank: the order of rows follows the names of files that were
        read, so it must not matter.
        """
        for name in ("speedups", "compiles", "graph_breaks", "step_counts", "runs"):
            known = frame(tables, name).select(
                "pass", "rank", "pid" if name == "speedups" else _NO_PID
            )
            if known.height:
                return min((cls(*row) for row in known.unique().iter_rows()), key=cls._order)
        return cls(MEASURED_PASS, None, None)

    def _order(self) -> tuple[object, ...]:
        """The measured pass before others, ``logs`` before the earlier ``logs.2``, ``logs.10``."""
        name, rank, pid = self.pass_name, self.rank, self.pid
        return name != MEASURED_PASS, len(name), name, rank is None, rank or 0, pid or 0

    def mine(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The rows of ``frame`` that belong to it (by pid where the table has one)."""
        mine = having(frame, **{"pass": self.pass_name}, rank=self.rank)
        if self.pid is not None and "pid" in frame.columns and not mine.is_empty():
            mine = mine.filter(pl.col("pid").is_null() | (pl.col("pid") == self.pid))
        return mine

    def rows(self, frame: pl.DataFrame, largest: str | None = None) -> list[Row]:
        """The same rows in the table's order, or the ``largest`` in that column first."""
        rows = self.mine(frame).to_dicts()
        return sorted(rows, key=lambda row: -(row[largest] or 0.0)) if largest else rows

    def pairs(self, tables: Tables) -> list[Row]:
        """The block pairs of the steps that the verdict is about."""
        return self.rows(tables["block_pairs"].filter(pl.col("headline").fill_null(True)))

    def first(self, frame: pl.DataFrame) -> Row:
        """The first such row, or an empty dict."""
        return next(iter(self.rows(frame)), {})

    def structs(self, frame: pl.DataFrame, kind: type[S], largest: str | None = None) -> list[S]:
        """The same rows, each as a ``kind``."""
        return [struct_of(kind, row) for row in self.rows(frame, largest)]


def code_of(row: Row) -> Code:
    """The code object of a row of a table."""
    return row["co_name"], row["co_filename"], row["co_firstlineno"]


def cut(text: Text, most: int) -> Text:
    """``text`` without what a report has no room for: at most ``most`` characters."""
    return text if text is None or len(text) <= most else f"{text[: most - 1]}…"


def struct_of(kind: type[S], row: Mapping[str, Any], /, **more: object) -> S:
    """``kind`` of the columns that bear its fields' names; ``more`` are the other fields."""
    given = {**row, **more}
    for name, stand_in in _stand_ins(kind).items():
        if name in given and given[name] is None:
            given[name] = stand_in
    return msgspec.convert(given, kind)


@cache
def _stand_ins(kind: type[msgspec.Struct]) -> dict[str, object]:
    """Field that is never null → what it holds in place of null."""
    types = {field.name: get_origin(field.type) or field.type for field in fields(kind)}
    return {name: _NAMED.get(name, _TYPED[of]) for name, of in types.items() if of in _TYPED}
