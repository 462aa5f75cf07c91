"""Which processes a log is of: ids, ranks, and when its records were written."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec
import polars as pl

from traceview.inputs import Source
from traceview.parse.files import rank_in_name
from traceview.parse.merge import pid_of
from traceview.reading.parts import Seen

#: As torch's tensorboard_trace_handler names a trace: HOST_PID.TIME.pt.trace.json.
_HOST = re.compile(r"(?:^|/)(?P<host>[^/]{1,255})_(?P<pid>\d{1,18})\.\d{10,20}\.pt\.trace\.json")
_SPANS = {  # table: (start, length, µs in a unit of the length)
    "compiles": ("started_us", "duration_us", 1.0),
    "compile_phases": ("started_us", "duration_us", 1.0),
    "steps": ("started_us", "host_ms", 1e3),
    "runs": ("started_us", "wall_s", 1e6),
}


def host_in_name(name: str, pid: int | None) -> str | None:
    """The host of process ``pid`` in a trace's file name."""
    named = _HOST.search(name)
    return named["host"] if named and int(named["pid"]) == pid else None


class Processes:
    """Gathers, table by table, what each process of one log did and when.

    Logs of several hosts put together may have the same pid with several ranks.
    """

    def __init__(self, source: Source) -> None:
        self._name, self._rank = source.name, rank_in_name(source.name)
        self._seen: dict[tuple[int | None, int | None], Seen] = {}

    def add(self, table: str, frame: pl.DataFrame) -> None:
        """What ``frame``, a batch of ``table``, shows of processes."""
        if frame.is_empty() or table == "unreadable":
            return
        start, length, unit = _SPANS.get(table, (None, None, 1.0))
        nothing = pl.lit(None, dtype=pl.Float64)
        began = pl.col(start) if start else nothing
        ended = began + pl.col(length).fill_null(0) * unit if length else nothing
        told = frame.group_by(pid_of(frame).alias("pid"), "rank").agg(
            began.min().alias("began"),
            ended.max().alias("ended"),
            (pl.col("records").sum() if table == "log_records" else pl.lit(0)).alias("records"),
        )
        tables = {table}
        if table == "graphs" and frame["kind"].eq("output_code").any():
            tables.add("output_code")
        for pid, rank, first, last, records in told.iter_rows():
            seen = Seen(pid, rank, "record", rank is None, None, first, last, records)
            self._learn(seen, tables)
        if (sizes := world_sizes(table, frame)) is not None:
            for pid, rank, size in sizes.drop_nulls("world_size").iter_rows():
                self._seen[pid, rank].world_size = size
        if table == "compiles":
            files = frame.select(pid_of(frame).alias("pid"), "rank", "user_file").drop_nulls(
                "user_file"
            )
            for pid, rank, file in files.unique().iter_rows():
                self._seen[pid, rank].scripts.add(file)

    def found(self) -> list[Seen]:
        """Every process, in order; rows without rank or pid go to the only process they can."""
        ranked: dict[int | None, list[Seen]] = {}
        for seen in self._seen.values():
            if seen.rank is not None:
                ranked.setdefault(seen.pid, []).append(seen)
        for seen in [seen for seen in self._seen.values() if seen.rank is None]:
            self._fold(seen, ranked.get(seen.pid, []))
        for seen in [seen for seen in self._seen.values() if seen.pid is None]:
            self._fold(seen, [s for s in self._seen.values() if s.pid is not None])
        for seen in self._seen.values():
            seen.host = host_in_name(self._name, seen.pid)
            if seen.rank is None:
                seen.rank, seen.rank_from = self._rank, "name" if self._rank is not None else None
        key = [(s.pid is None, s.pid or 0, s.rank or 0) for s in self._seen.values()]
        found = [seen for _, seen in sorted(zip(key, self._seen.values(), strict=True))]
        return found or [Seen(rank=self._rank)]

    def _fold(self, seen: Seen, into: list[Seen]) -> None:
        if len(into) == 1:
            del self._seen[seen.pid, seen.rank]
            self._learn(msgspec.structs.replace(seen, pid=into[0].pid, rank=into[0].rank))

    def _learn(self, told: Seen, tables: Iterable[str] = ()) -> None:
        seen = self._seen.setdefault((told.pid, told.rank), Seen(told.pid, told.rank, "record"))
        seen.unranked |= told.unranked
        seen.began_us = least(seen.began_us, told.began_us)
        seen.ended_us = most(seen.ended_us, told.ended_us)
        seen.records += told.records
        seen.world_size = seen.world_size or told.world_size
        seen.tables |= told.tables | set(tables)
        seen.scripts |= told.scripts


def world_sizes(table: str, frame: pl.DataFrame) -> pl.DataFrame | None:
    """pid, rank and world_size of a process's job; None if ``table`` can't."""
    if table == "traces":
        size = pl.col("world_size")
    elif table == "configs":
        frame = frame.filter(section="world")
        size = pl.col("settings").str.json_path_match("$.world_size")
    elif table == "environment":
        frame = frame.filter(section="torch", name="world_size")
        size = pl.col("value")
    else:
        return None
    number = size.cast(pl.Int32, strict=False).alias("world_size")
    return frame.select(pid_of(frame).alias("pid"), "rank", number)


def least(*moments: float | None) -> float | None:
    """The first of the moments that are known."""
    return min((moment for moment in moments if moment is not None), default=None)


def most(*moments: float | None) -> float | None:
    """The last of the moments that are known."""
    return max((moment for moment in moments if moment is not None), default=None)
