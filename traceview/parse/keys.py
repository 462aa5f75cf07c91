"""Names of compiles for logs that do not say which ``torch._dynamo.reset()`` they came after.

A text log gives a process and a compile id; the id alone repeats after a reset. The structured log
knows every compile with its epoch and its start, so the time of a text line decides between them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from functools import lru_cache

import msgspec
import polars as pl

from traceview import limits
from traceview.compile_id import CompileId, compile_key

_QUARTER_US = 900e6  # time zones differ by multiples of a quarter of an hour
_SLACK_US = 5e3  # a log line is stamped in whole milliseconds


class CompileName(msgspec.Struct, frozen=True):
    """A compile as the tables name it, and the attempt that the log line belonged to."""

    compile_key: str
    compile_id: str
    attempt: int


class CompileKeys:
    """Finds ``compile_key`` for (pid, compile id, time), and the rank of a pid.

    Without ``compiles`` every id is taken to be of epoch 0.
    """

    def __init__(
        self,
        pass_name: str,
        compiles: pl.DataFrame | None = None,
        ranks: Mapping[int, int] | None = None,
    ) -> None:
        self._pass = pass_name
        self._ranks = dict(ranks or {})
        self._known: dict[tuple[int, str], list[tuple[float, int]]] = {}
        self._offset: float | None = None
        if compiles is not None:
            mine = compiles.filter(pl.col("pass") == pass_name).drop_nulls("epoch")
            columns = mine.select("pid", "compile_id", "started_us", "epoch")
            for pid, compile_id, started_us, epoch in columns.iter_rows():
                self._known.setdefault((pid, compile_id), []).append((started_us or 0.0, epoch))
        for starts in self._known.values():
            starts.sort()

    @property
    def tell_times_apart(self) -> bool:
        """Whether the time of a line can matter: some compiles are known already."""
        return bool(self._known)

    def rank(self, pid: int | None) -> int | None:
        """The rank of a process, where the collector or the structured log has it."""
        return None if pid is None else self._ranks.get(pid)

    def learn_rank(self, pid: int, rank: int) -> None:
        """A log line has the rank of its process; what was known before stays."""
        if len(self._ranks) < limits.now.ids:
            self._ranks.setdefault(pid, rank)

    def name(self, pid: int, text: str, clock_us: float | None = None) -> CompileName | None:
        """The compile that ``text`` (``0/0_1``) names; None where it is no compile id.

        ``clock_us`` is the time of the log line in µs since the start of its year, local time.
        """
        if not self._known:
            return _named(self._pass, pid, 0, text)
        _, compile_id = _parsed(text)
        epoch = self._epoch(self._known.get((pid, compile_id), []), clock_us)
        return _named(self._pass, pid, epoch, text)

    def _epoch(self, starts: list[tuple[float, int]], clock_us: float | None) -> int:
        if not starts:
            return 0
        if clock_us is not None and self._offset is None and starts[0][0]:
            # The first line of a compile follows its start: the rest is the year and the time zone.
            self._offset = round((starts[0][0] - clock_us) / _QUARTER_US) * _QUARTER_US
        if clock_us is None or self._offset is None or len({epoch for _, epoch in starts}) == 1:
            return starts[0][1]
        now = clock_us + self._offset + _SLACK_US
        return starts[max(bisect_right(starts, now, key=lambda start: start[0]) - 1, 0)][1]


@lru_cache(maxsize=4096)
def _parsed(text: str) -> tuple[CompileId | None, str]:
    """A compile id, and how it is written without its attempt."""
    parsed = CompileId.parse(text)
    return parsed, str(parsed)


@lru_cache(maxsize=4096)
def _named(pass_name: str, pid: int, epoch: int, text: str) -> CompileName | None:
    parsed, compile_id = _parsed(text)
    if parsed is None:
        return None
    return CompileName(compile_key(pass_name, pid, epoch, parsed), compile_id, parsed.attempt)
