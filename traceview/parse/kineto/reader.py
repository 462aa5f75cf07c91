"""A trace into raw frames: device executions, host calls and operators, memory.

Bounded memory: of an event only numbers are kept, some 60 bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import polars as pl

from traceview.inputs.streams import Stream
from traceview.parse.damage import Damage
from traceview.parse.kineto.about import About, about
from traceview.parse.kineto.columns import JOINT, Columns
from traceview.parse.kineto.gathering import INPUTS, KINDS, SIZES, Gathered, decoded
from traceview.parse.kineto.processes import main_process, without
from traceview.parse.kineto.rest import Rest
from traceview.parse.kineto.splitter import Splitter, UnknownLayout
from traceview.parse.kineto.stream import pieces
from traceview.torchtext import marks

#: A longer event than a day is damage: CUPTI has written durations of centuries.
LONGEST_US = 86_400 * 10**6
#: Times up to here are exact to the ns in a float64.
FARTHEST_US = 2**52


class Events(msgspec.Struct):
    """Events in ``rows``, whose words are numbers.

    Column ``what`` is a row of ``whats`` (name, kind, tid), ``written`` one of ``writings``: of a
    device event its grid and block, of a host event its inputs and its kernel's file.
    """

    rows: pl.DataFrame
    whats: pl.DataFrame
    writings: pl.DataFrame


class RawFrames(msgspec.Struct):
    """Events of a trace by what they are; ``start_ns`` counts from ``zero_ns``, the first of them.

    Those of the host are in order of start, the longer first of two that start at once. They are of
    one process: ``others`` says how many more the trace holds, and how many host events of theirs.
    """

    device: Events
    host: Events
    memory: pl.DataFrame
    zero_ns: int | None
    pid: int | None
    about: About
    others: tuple[int, int] = (0, 0)


def read_raw(stream: Stream, name: str, damage: Damage, rest: Rest | None = None) -> RawFrames:
    """The events of ``stream``; what cannot be read is counted in ``damage`` under ``name``.

    ``rest`` is another process that has begun to read the same trace from its middle on.
    """
    gathered = Gathered()
    parts = Splitter(pieces(stream, name, damage), until=rest.offset if rest else None)
    try:
        for part in parts:
            gathered.add(decoded(part, name, damage))
            if rest and parts.reached and (end := rest.take(gathered.take, name, damage)):
                parts.tail = end.tail
                break
            parts.reached = False
    except UnknownLayout as error:
        damage.count(name, "unknown_format", None, str(error))
    device = _events(gathered.device, SIZES, name, damage)
    host = _events(gathered.host, INPUTS, name, damage)
    memory = gathered.memory.frame()
    pids = _pids(gathered.host)
    pid = main_process(host.rows["what"], host.whats["name"].to_list(), pids)
    others = 0, 0
    if more := len(set(pids) - {None, pid}):
        others = more, _of_one_process(host, device, pid, pids)
        memory = memory.filter(~_others(memory, _pids(gathered.memory), pid))
    starts: list[Any] = [sort.rows["start_ns"].min() for sort in (device, host) if sort.rows.height]
    zero = min(starts, default=None)
    for sort in (device, host):
        sort.rows = sort.rows.with_columns(pl.col("start_ns") - pl.lit(zero, pl.Int64))
    host.rows = _in_order(host.rows)
    memory = memory.sort("ts", nulls_last=True)
    known = pid if isinstance(pid, int) else None
    return RawFrames(device, host, memory, zero, known, about(parts.head + parts.tail), others)


def _pids(columns: Columns) -> list[Any]:
    """The process by ``what``."""
    return [pid for *_, pid in columns.whats]


def _others(rows: pl.DataFrame, pids: list[Any], mine: Any) -> pl.Series:  # noqa: ANN401
    """Whether each of ``rows`` is of another process than ``mine``."""
    other = pl.Series("other", [pid not in (None, mine) for pid in pids], dtype=pl.Boolean)
    return other.gather(rows["what"])


def _of_one_process(
    host: Events,
    device: Events,
    pid: Any,  # noqa: ANN401
    pids: list[Any],
) -> int:
    """Leaves the events of process ``pid``; how many host events are of others."""
    others = _others(host.rows, pids, pid)
    host.rows, device.rows = without(host.rows, device.rows, others)
    mine = pl.Series([other in (None, pid) for other in pids], dtype=pl.Boolean)
    host.whats = host.whats.with_columns(pl.when(mine).then("name").alias("name"))
    return int(others.sum())


def _events(columns: Columns, written: Sequence[str], name: str, damage: Damage) -> Events:
    """What was gathered, less the events, counted, whose times cannot be."""
    rows, whats = columns.frame(), columns.whats
    ts, dur = rows["ts"], rows["dur"]
    sound = ((ts.abs() < FARTHEST_US) & dur.is_between(0, LONGEST_US)).fill_null(False)
    if not sound.all():
        names = [what for what, *_ in whats]
        for what, start, length in rows.filter(~sound).select("what", "ts", "dur").iter_rows():
            damage.count(name, "bad_event", None, f"{names[what]}: ts {start}, dur {length}")
        rows = rows.filter(sound)
    times = (_ns(rows["ts"]).alias("start_ns"), _ns(rows["dur"]).alias("duration_ns"))
    return Events(
        rows.drop("ts", "dur").with_columns(times),
        _whats(whats),
        _writings(columns.writings, written),
    )


def _ns(us: pl.Series) -> pl.Series:
    """Whole ns of µs with three decimals.

    Whole and broken µs apart: from 2**42 µs on, which Kineto's clock reaches, ``ts * 1000`` is
    itself rounded, and its last digit is wrong for some values.
    """
    whole = us.floor()
    broken = ((us - whole) * 1000).round().cast(pl.Int64)
    exact: pl.Series = whole.cast(pl.Int64) * 1000 + broken
    return exact


def _whats(whats: Iterable[tuple[str, str, object, object]]) -> pl.DataFrame:
    """Name, kind and tid by number. The collector's cheap ranges are operators: they are marks."""
    rows = [
        (name or None, "user_annotation" if name.startswith(marks.OURS) else KINDS[cat], str(tid))
        for name, cat, tid, _ in whats
    ]
    schema = dict.fromkeys(("name", "kind", "tid"), pl.String)
    return pl.DataFrame(rows, schema=schema, orient="row")


def _in_order(host: pl.DataFrame) -> pl.DataFrame:
    """``host`` sorted, a column at a time: it is the largest thing in memory."""
    order = host.select(
        pl.arg_sort_by(
            "start_ns", "duration_ns", descending=[False, True], maintain_order=True
        )
    ).to_series()  # fmt: skip
    ordered = [host.drop_in_place(name).gather(order) for name in host.columns]
    return pl.DataFrame(ordered)


def _writings(joined: Iterable[bytes], names: Sequence[str]) -> pl.DataFrame:
    """The single texts of ``written``, by number; the file, no list, without its quotes."""
    last = len(names) - 1
    rows = [[*map(_written, text.split(JOINT, last))] for text in joined]
    frame = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")
    files = pl.col("kernel_file").str.strip_chars('"')
    return frame.with_columns(files) if "kernel_file" in names else frame


def _written(text: bytes) -> str | None:
    return text.decode(errors="replace") or None
