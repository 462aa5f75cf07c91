"""Events of one sort, column by column, as numbers alone.

Names, shapes and files repeat: what an event says in words is kept once, a row holds its number.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from math import nan
from operator import attrgetter
from typing import Any

import msgspec
import polars as pl

from traceview import limits

#: Between the arguments of ``written``; JSON has no such byte.
JOINT = b"\0"
_ARGUMENTS = attrgetter("args")
_WHAT = attrgetter("name", "cat", "tid", "pid")
#: The name of events beyond them.
OTHERS = "(others)"
#: Rows that are given to another process at a time.
_ROWS = 65_536
#: Stands for "not there" among whole numbers until they are a polars column.
MISSING = -(2**63)


class Numbered(dict[Any, int]):
    """Values in the order in which they were asked for: value → number.

    Beyond ``limits.names`` a new value is ``folded``.
    """

    def __init__(self, folded: Callable[[Any], Any] = lambda value: value) -> None:
        super().__init__()
        self._folded = folded

    def __missing__(self, value: Any) -> int:  # noqa: ANN401
        if len(self) >= limits.now.names and (other := self._folded(value)) != value:
            return self[other]
        number = self[value] = len(self)
        return number

    @property
    def beyond(self) -> list[int]:
        """The numbers of what stands for other values."""
        return [number for value, number in self.items() if self._folded(value) == value]


class Words(msgspec.Struct, array_like=True, tag="words", gc=False):
    """What the numbers of one sort of events stand for, in the other process."""

    sort: int
    whats: list[tuple[Any, Any, Any, Any]]
    writings: list[bytes]
    left_out: int = 0


class Rows(msgspec.Struct, array_like=True, tag="rows", gc=False):
    """The columns of some events of one sort, each as an array's bytes."""

    sort: int
    columns: list[bytes]


class Columns:
    """Rows of events: ``what`` (name, category, thread, process) and ``written`` by number, and
    numbers.

    ``written`` names arguments that are kept as one text, as they stand in the trace, ``times``
    attributes of the event, ``numbers`` arguments that are whole numbers.
    """

    def __init__(
        self, written: Sequence[str], times: Sequence[str], numbers: Sequence[str]
    ) -> None:
        nothing, folded = (JOINT * times for times in (len(written) - 1, len(written)))
        self.whats = Numbered(lambda what: (OTHERS, what[1], None, None))  # its category alone
        self.writings = Numbered(lambda _: folded)  # which is read as nothing, too
        self.writings[nothing] = 0
        self.left_out = 0
        self._get_written = attrgetter(*written)
        self._what, self._written = array("I"), array("I")
        self._times = {name: (attrgetter(name), array("d")) for name in times}
        self._numbers = {name: (attrgetter(name), array("q")) for name in numbers}
        self._foreign_whats: list[int] = []
        self._foreign_writings: list[int] = []

    def add(self, events: list[Any]) -> None:
        """Append ``events``; they may be forgotten afterwards.

        Those beyond ``limits.events`` are left out and counted.
        """
        if len(self._what) + len(events) > limits.now.events:
            kept = events[: limits.now.events - len(self._what)]
            self.left_out += len(events) - len(kept)
            events = kept
        arguments = list(map(_ARGUMENTS, events))
        written = map(JOINT.join, map(self._get_written, arguments))
        self._what.extend(map(self.whats.__getitem__, map(_WHAT, events)))
        self._written.extend(map(self.writings.__getitem__, written))
        for get, times in self._times.values():
            _extend(times, get, events, lambda value: nan if value is None else value)
        for get, numbers in self._numbers.values():
            _extend(numbers, get, arguments, _whole)

    def parts(self) -> Iterator[list[bytes]]:
        """All rows in the order in which they came, some at a time: each column as bytes."""
        for start in range(0, len(self._what), _ROWS):
            yield [column[start : start + _ROWS].tobytes() for column in self._columns()]

    def lost(self, rows: pl.DataFrame) -> int:
        """Of how many ``rows`` of the ``frame`` the name or the texts were not kept."""
        what, written = self.whats.beyond, self.writings.beyond
        return rows.filter(pl.col("what").is_in(what) | pl.col("written").is_in(written)).height

    def translate(self, words: Words) -> None:
        """What the numbers in the ``parts`` that are appended next stand for."""
        self._foreign_whats = [self.whats[tuple(what)] for what in words.whats]
        self._foreign_writings = [self.writings[text] for text in words.writings]
        self.left_out += words.left_out

    def append(self, part: list[bytes]) -> None:
        """Append the rows of one of the ``parts`` made in another process."""
        rows = len(part[0]) // self._what.itemsize
        kept = min(rows, limits.now.events - len(self._what))
        self.left_out += rows - kept
        sizes = [column.itemsize for column in self._columns()]
        part = [data[: kept * size] for data, size in zip(part, sizes, strict=True)]
        what, written, *numbers = part
        self._what.extend(map(self._foreign_whats.__getitem__, array("I", what)))
        self._written.extend(map(self._foreign_writings.__getitem__, array("I", written)))
        for column, data in zip(self._columns()[2:], numbers, strict=True):
            column.frombytes(data)

    def _columns(self) -> list[array[Any]]:
        columns: list[array[Any]] = [self._what, self._written]
        columns += (column for _, column in self._times.values())
        columns += (column for _, column in self._numbers.values())
        return columns

    def frame(self) -> pl.DataFrame:
        """All rows in the order in which they came, which are forgotten here; null is missing."""
        codes = {"what": self._what, "written": self._written}
        series = [_taken(name, column, pl.UInt32) for name, column in codes.items()]
        series += (_taken(name, times, pl.Float64) for name, (_, times) in self._times.items())
        for name, (_, numbers) in self._numbers.items():
            known = _taken(name, numbers, pl.Int64)
            series.append(known.set(known == MISSING, None))
        return pl.DataFrame(series).with_columns(pl.col(*self._times).fill_nan(None))


def _taken(name: str, column: array[Any], dtype: type[pl.DataType]) -> pl.Series:
    series = pl.Series(name, column, dtype=dtype)
    del column[:]
    return series


def _extend(
    column: array[Any], get: Callable[[Any], Any], owners: list[Any], change: Callable[[Any], Any]
) -> None:
    """Append an attribute of ``owners``, changed only where it is not what it should be."""
    rows = len(column)
    try:
        column.extend(map(get, owners))
    except (TypeError, OverflowError):  # a foreign trace has something else
        del column[rows:]
        column.extend(map(change, map(get, owners)))


def _whole(value: Any) -> int:  # noqa: ANN401
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        return MISSING
    return number if abs(number) < -MISSING else MISSING
