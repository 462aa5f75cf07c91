"""The tables of one run: polars frames that match their declarations, in memory or as Parquet.

A table that was not recorded is *absent* (``tables.has(name)`` is False). That is not a table with
no rows: the first means "we cannot say", the second "we looked and there was none".
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import cache, partial
from io import BytesIO
from operator import itemgetter
from pathlib import Path
from typing import Any, Concatenate, TypeVar

import msgspec
import polars as pl

from traceview.run import write_whole
from traceview.schema import TableSpec, all_tables

T = TypeVar("T")
R = TypeVar("R")
MakeTable = Callable[[], pl.DataFrame]
_JSON = msgspec.json.Encoder()
_LISTS = (pl.List(pl.String), pl.List(pl.Int64))
_MANY = 16


class Tables:
    """A set of declared tables by name."""

    def __init__(self, frames: Mapping[str, pl.DataFrame] | None = None) -> None:
        self._frames: dict[str, pl.DataFrame | MakeTable] = {}
        self._made: dict[Hashable, Any] = {}
        for name, frame in (frames or {}).items():
            self.put(name, frame)

    def put(self, name: str, frame: pl.DataFrame) -> None:
        """Keep ``frame`` as table ``name``; it is cast to, and checked against, the declaration."""
        self._frames[name] = conform(spec_of(name), frame)
        self._made.clear()

    def put_later(self, name: str, make: MakeTable) -> None:
        """The same for what ``make`` gives, which is called when the table is first read."""
        self._frames[name] = make
        self._made.clear()

    def copy(self) -> Tables:
        """The same tables, to which others can be put; what is put later is made once for both."""
        result = Tables()
        for name, frame in self._frames.items():
            made = isinstance(frame, pl.DataFrame)
            result._frames[name] = frame if made else partial(self.__getitem__, name)
        return result

    def once(self, make: Callable[Concatenate[Tables, ...], T], *given: Hashable) -> T:
        """``make(tables, *given)``, made once, and again after a table was put.

        Every caller gets the same object, which must not be changed.
        """
        key = (make, *given)
        if key not in self._made:
            self._made[key] = make(self, *given)
        made: T = self._made[key]
        return made

    def keep(self, make: Callable[[Tables], T], made: T) -> None:
        """Let ``once(make)`` give ``made``, which no table that was put since has a part in."""
        self._made[(make,)] = made

    def has(self, name: str) -> bool:
        """Whether the table was recorded at all."""
        return name in self._frames

    def __getitem__(self, name: str) -> pl.DataFrame:
        """The table, or an empty one of the right columns where it was not recorded."""
        frame = self._frames.get(name)
        if frame is None:
            return empty(name)
        if not isinstance(frame, pl.DataFrame):
            frame = self._frames[name] = conform(spec_of(name), frame())
        return frame

    def __iter__(self) -> Iterator[str]:
        return iter(self._frames)

    def save(self, folder: Path) -> None:
        """Write every table as ``folder/NAME.parquet``."""
        folder.mkdir(parents=True, exist_ok=True)
        for name in self:
            write_parquet(self[name], folder / f"{name}.parquet")

    @classmethod
    def load(cls, folder: Path) -> Tables:
        """Read what ``save`` wrote; a file that no declaration names is left alone."""
        known = all_tables()
        found = {path.stem: path for path in sorted(folder.glob("*.parquet"))}
        return cls({name: scan_parquet([found[name]]).collect() for name in known if name in found})


def scan_parquet(paths: list[Path]) -> pl.LazyFrame:
    """The rows of Parquet files. Whatever stands in a path is its name: polars on its own takes
    brackets and stars for a pattern, and a folder named ``lr=0.1`` for a column.
    """
    try:
        for path in paths:
            os.fspath(path).encode()
    except UnicodeEncodeError:  # polars can't name it
        return pl.scan_parquet([path.read_bytes() for path in paths], hive_partitioning=False)
    return pl.scan_parquet(paths, glob=False, hive_partitioning=False)


def write_parquet(frame: pl.DataFrame, path: Path, level: int | None = None) -> None:
    """``frame`` as a file, by way of memory.

    For a small table, polars' own way to a file costs as much again, and not all paths are text.
    """
    packed = BytesIO()
    frame.write_parquet(
        packed, compression="zstd", compression_level=level, statistics=level is None
    )
    write_whole(path, packed.getbuffer())


def spec_of(name: str) -> TableSpec:
    """The declaration of ``name``; KeyError with the name where there is none."""
    return all_tables()[name]


def grouped(
    items: Iterable[R], *columns: str, by: Callable[[R], object] | None = None
) -> defaultdict[Any, list[R]]:
    """Items in their order by what ``by`` gives; rows by a column, or the tuple of several."""
    key: Callable[[Any], object] = by or itemgetter(*columns)
    found: defaultdict[Any, list[R]] = defaultdict(list)
    for item in items:
        found[key(item)].append(item)
    return found


@cache
def empty(name: str) -> pl.DataFrame:
    """Table ``name`` without rows."""
    return pl.DataFrame(schema=spec_of(name).polars_schema)


def having(frame: pl.DataFrame, **values: object) -> pl.DataFrame:
    """The rows of ``frame`` that have these values in these columns; None: that have null.

    As ``filter`` finds them, in a tenth of its time where all rows do, or there are none.
    """
    for name, value in values.items():
        if frame.is_empty():
            break
        column = frame[name]
        if value is None:
            if column.null_count() < len(column):
                frame = frame.filter(column.is_null())
        else:
            same = column == value
            if not same.all(ignore_nulls=False):
                frame = frame.filter(same)
    return frame


def from_rows(name: str, rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """Table ``name`` from dicts; what a row lacks is null, an undeclared key is a ValueError."""
    schema = spec_of(name).polars_schema
    data = list(rows)
    if not data:
        return empty(name)
    unknown = {key for row in data for key in row} - schema.keys()
    if unknown:
        raise ValueError(f"table {name} declares no column {', '.join(sorted(unknown))}")
    columns = {
        column: listed([row.get(column) for row in data], dtype) for column, dtype in schema.items()
    }
    return pl.DataFrame(columns, schema=schema, strict=False)


def listed(values: list[Any], dtype: pl.DataType | type[pl.DataType]) -> list[Any] | pl.Series:
    """A column's values for polars; many lists by way of JSON: it makes a Series of each else."""
    if dtype not in _LISTS or len(values) < _MANY:
        return values
    try:
        texts = [None if value is None else _JSON.encode(value).decode() for value in values]
        return pl.Series(texts, dtype=pl.String).str.json_decode(dtype)
    except (TypeError, ValueError, pl.exceptions.PolarsError):  # polars says what is wrong
        return values


def conform(spec: TableSpec, frame: pl.DataFrame) -> pl.DataFrame:
    """``frame`` with exactly the declared columns and dtypes; missing ones become null."""
    declared, present = spec.polars_schema, set(frame.columns)
    if frame.columns == [*declared] and frame.dtypes == [*declared.values()]:
        return frame
    unknown = present - declared.keys()
    if unknown:
        raise ValueError(f"table {spec.name} declares no column {', '.join(sorted(unknown))}")
    return frame.select(
        pl.col(column.name).cast(column.dtype)
        if column.name in present
        else pl.lit(None, dtype=column.dtype).alias(column.name)
        for column in spec.columns
    )
