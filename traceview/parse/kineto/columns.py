"""Events of one sort, gathered column by column into frames of bounded size.

Names, shapes and files repeat: each text is kept once, and a row holds its number. ``decoded``
makes text of the numbers again, where rows with the same text share its bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import polars as pl

#: Rows as Python objects at a time.
ROWS_PER_FRAME = 16_384
#: From events to one value each.
Getter = Callable[[list[Any]], Iterable[Any]]
#: By column, the texts in the order of their numbers.
Texts = dict[str, pl.Series]


class Columns:
    """Rows of events; ``texts`` and ``numbers`` say how each column is got from events."""

    def __init__(
        self, texts: dict[str, Getter], numbers: dict[str, tuple[Getter, type[pl.DataType]]]
    ) -> None:
        self._texts = {name: (get, Numbered()) for name, get in texts.items()}
        self._numbers = numbers
        self._lists: dict[str, list[Any]] = {name: [] for name in (*texts, *numbers)}
        self._frames: list[pl.DataFrame] = []

    def add(self, events: list[Any]) -> None:
        """Append ``events``; they may be forgotten afterwards."""
        for name, (get, numbered) in self._texts.items():
            self._lists[name] += map(numbered.__getitem__, get(events))
        for name, (get, _) in self._numbers.items():
            self._lists[name] += get(events)
        if len(next(iter(self._lists.values()))) >= ROWS_PER_FRAME:
            self._flush()

    def frame(self) -> pl.DataFrame:
        """All rows in the order in which they came, texts as numbers."""
        self._flush()
        return pl.concat(self._frames)

    def texts(self) -> Texts:
        """What the numbers stand for, by column; an empty text is missing."""
        return {name: _series_of(numbered) for name, (_, numbered) in self._texts.items()}

    def _flush(self) -> None:
        lists = self._lists
        series = [pl.Series(name, lists[name], dtype=pl.UInt32) for name in self._texts]
        series += [_series(name, lists[name], dtype) for name, (_, dtype) in self._numbers.items()]
        self._frames.append(pl.DataFrame(series))
        self._lists = {name: [] for name in lists}


class Numbered(dict[Any, int]):
    """Values in the order in which they were asked for: value → number."""

    def __missing__(self, value: Any) -> int:  # noqa: ANN401
        number = self[value] = len(self)
        return number


def decoded(frame: pl.DataFrame, texts: Texts) -> pl.DataFrame:
    """``frame`` with text for number in those of its columns that ``texts`` names."""
    names = [name for name in frame.columns if name in texts]
    return frame.with_columns(texts[name].gather(frame[name]).alias(name) for name in names)


def _series_of(values: Iterable[str | bytes | None]) -> pl.Series:
    texts = [v.decode(errors="replace") if isinstance(v, bytes) else v for v in values]
    return pl.Series([text or None for text in texts], dtype=pl.String)


def _series(name: str, values: list[Any], dtype: type[pl.DataType]) -> pl.Series:
    """Numbers; where a foreign trace has something else, what cannot be read is missing."""
    try:
        return pl.Series(name, values, dtype=dtype)
    except (TypeError, OverflowError, pl.exceptions.PolarsError):
        return pl.Series(name, values, dtype=dtype, strict=False)
