"""A trace into raw frames: device executions, host calls and operators, memory.

Bounded memory: of an event only numbers are kept, some 60 bytes. Of several processes in one trace
(a merged one) the events of one are kept: of the process with most marked steps or, without marks,
with most events. What the others did is no part of its step, and two processes' correlation ids are
the same numbers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec
import polars as pl

from traceview.inputs.streams import Stream
from traceview.json_errors import NOT_JSON
from traceview.parse.damage import Damage
from traceview.parse.kineto.columns import JOINT, Columns
from traceview.parse.kineto.events import INPUTS, KINDS, SIZES, Gathered, decoded
from traceview.parse.kineto.nesting import is_step
from traceview.parse.kineto.rest import Rest
from traceview.parse.kineto.splitter import Splitter, UnknownLayout, objects, pieces
from traceview.torchtext import marks

_BASE = re.compile(rb'"baseTimeNanoseconds"\s*:\s*(\d{1,19})')
_WORLD = re.compile(rb'"distributedInfo"\s*:\s*(?=\{)')
_DEVICE = re.compile(rb'"deviceProperties"\s*:\s*\[\s*(?=\{)')
_MARKS = (marks.OURS, marks.PROFILER)
#: Older torch counts ``ts`` from 1970: no computer has run since then, none is older than 2001.
_UNIX_NS = 10**18
#: A longer event than a day is damage: CUPTI has written durations of centuries.
LONGEST_US = 86_400 * 10**6
#: Times up to here are exact to the ns in a float64.
FARTHEST_US = 2**52


class About(msgspec.Struct, frozen=True):
    """Of a trace: rank, ranks of its job, its first device, Unix time of its ``ts`` 0."""

    rank: int | None = None
    world_size: int | None = None
    device: str | None = None
    multiprocessors: int | None = None
    base_ns: int | None = None

    @classmethod
    def read(cls, text: bytes) -> About:
        """What ``text`` says, which surrounds the list of events."""
        world, device = _object(_WORLD, text), _object(_DEVICE, text)
        base, name = _BASE.search(text), device.get("name")
        return cls(
            _count(world.get("rank")),
            _count(world.get("world_size")),
            name if isinstance(name, str) else None,
            _count(device.get("numSms")),
            int(base[1]) if base else None,
        )

    def unix_ns(self, ts_ns: int | None) -> int | None:
        """Unix time of an event's ``ts``."""
        if ts_ns is None or (self.base_ns is None and ts_ns < _UNIX_NS):
            return None
        return ts_ns + (self.base_ns or 0)


def _object(before: re.Pattern[bytes], text: bytes) -> dict[str, Any]:
    """The first JSON object behind ``before``; empty if there is none, or it is damaged."""
    match = before.search(text)
    if match is None:
        return {}
    try:
        found = msgspec.json.decode(next(objects(text[match.end() :]), b""))
    except NOT_JSON:
        return {}
    return found if isinstance(found, dict) else {}


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and 0 <= value < 2**31 else None


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
    one process: ``others`` says how many more the trace holds, and how many events of theirs.
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
    gathered.count_unread(name, damage)
    device = _events(gathered.device, SIZES, name, damage)
    host = _events(gathered.host, INPUTS, name, damage)
    memory = gathered.memory.frame()
    pids = _pids(gathered.host)
    pid = _main_process(host.rows["what"], host.whats["name"].to_list(), pids)
    others = 0, 0
    if more := len(set(pids) - {None, pid}):
        others = more, _leave_one(host, device, pid, pids)
        memory = memory.filter(~_others(memory, _pids(gathered.memory), pid))
    starts: list[Any] = [sort.rows["start_ns"].min() for sort in (device, host) if sort.rows.height]
    zero = min(starts, default=None)
    for sort in (device, host):
        sort.rows = sort.rows.with_columns(pl.col("start_ns") - pl.lit(zero, pl.Int64))
    # Sorted a column at a time: it is the largest thing in memory.
    by = pl.arg_sort_by("start_ns", "duration_ns", descending=[False, True], maintain_order=True)
    order, rows = host.rows.select(by).to_series(), host.rows
    host.rows = pl.DataFrame([rows.drop_in_place(name)[order] for name in rows.columns])
    memory = memory.sort("ts", nulls_last=True)
    known = pid if isinstance(pid, int) else None
    about = About.read(parts.head + parts.tail)
    return RawFrames(device, host, memory, zero, known, about, others)


def _main_process(what: pl.Series, names: Sequence[str | None], pids: Sequence[Any]) -> Any:  # noqa: ANN401
    """The process whose events are kept; None where no event names one.

    ``what``: of every host event the number of its name and process, in ``names`` and ``pids``.
    """
    known = set(pids) - {None}
    if len(known) < 2:
        return next(iter(known), None)
    times = dict(what.value_counts().iter_rows())
    weights = dict.fromkeys(known, (0, 0))
    for number, (name, pid) in enumerate(zip(names, pids, strict=True)):
        if pid is not None:
            count, (steps, events) = times.get(number, 0), weights[pid]
            marked = count if is_step(name or "") else 0
            weights[pid] = (steps + marked, events + count)
    return max(weights, key=lambda pid: (weights[pid], str(pid)))


def _pids(columns: Columns) -> list[Any]:
    """The process by ``what``."""
    return [pid for *_, pid in columns.whats]


def _others(rows: pl.DataFrame, pids: list[Any], mine: Any) -> pl.Series:  # noqa: ANN401
    """Whether each of ``rows`` is of another process than ``mine``."""
    other = pl.Series("other", [pid not in (None, mine) for pid in pids], dtype=pl.Boolean)
    return other[rows["what"]]


def _leave_one(host: Events, device: Events, pid: Any, pids: list[Any]) -> int:  # noqa: ANN401
    """Leaves the events of process ``pid``; how many events are of others.

    Device events do not tell their process. One is of the process whose call has its correlation;
    where both have one, of the call nearest in time.
    """
    others = _others(host.rows, pids, pid)
    calls = host.rows.select("correlation", others.alias("other"), called="start_ns")
    rows = device.rows.select("correlation", "start_ns").with_row_index("row")
    nearest = (
        rows.join(calls.drop_nulls("correlation"), on="correlation")
        .sort((pl.col("start_ns") - pl.col("called")).abs(), "row")
        .unique("row", keep="first")
    )
    theirs = rows["row"].is_in(nearest.filter("other")["row"].implode())
    host.rows, device.rows = host.rows.filter(~others), device.rows.filter(~theirs)
    mine = pl.Series([other in (None, pid) for other in pids], dtype=pl.Boolean)
    host.whats = host.whats.with_columns(pl.when(mine).then("name").alias("name"))
    return int(others.sum()) + int(theirs.sum())


def _events(columns: Columns, written: Sequence[str], name: str, damage: Damage) -> Events:
    """What was gathered, less the events, counted, whose times cannot be."""
    rows, whats = columns.frame(), columns.whats
    unread = {"too_many_events": columns.left_out, "too_many_names": columns.lost(rows)}
    for kind, lost in unread.items():
        if lost:
            damage.count(name, kind, None, "", times=lost)
    sound = rows.select(
        ((pl.col("ts").abs() < FARTHEST_US) & pl.col("dur").is_between(0, LONGEST_US)).fill_null(
            False
        )
    ).to_series()
    if not sound.all():
        names = [what for what, *_ in whats]
        for what, start, length in rows.filter(~sound).select("what", "ts", "dur").iter_rows():
            damage.count(name, "bad_event", None, f"{names[what]}: ts {start}, dur {length}")
        rows = rows.filter(sound)
    # The collector's cheap ranges are operators, and so are older torch's steps: they are marks.
    named = [
        (
            what or marks.UNNAMED,
            "user_annotation" if what.startswith(_MARKS) else KINDS[cat],
            str(tid),
        )
        for what, cat, tid, _ in whats
    ]
    texts = [
        [part.decode(errors="replace") or None for part in text.split(JOINT)[: len(written)]]
        for text in columns.writings
    ]
    writings = _texts(texts, written)
    if "kernel_file" in written:  # no list, but with its quotes
        writings = writings.with_columns(pl.col("kernel_file").str.strip_chars('"'))
    rows = rows.select(
        pl.exclude("ts", "dur"), start_ns=_ns(pl.col("ts")), duration_ns=_ns(pl.col("dur"))
    )
    return Events(rows, _texts(named, ("name", "kind", "tid")), writings)


def _texts(rows: Sequence[Sequence[str | None]], names: Sequence[str]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")


def _ns(us: pl.Expr) -> pl.Expr:
    """Whole ns of µs with three decimals.

    Whole and broken µs apart: from 2**42 µs on, which Kineto's clock reaches, ``ts * 1000`` is
    itself rounded, and its last digit is wrong for some values.
    """
    whole = us.floor()
    broken = ((us - whole) * 1000).round().cast(pl.Int64)
    return whole.cast(pl.Int64) * 1000 + broken
