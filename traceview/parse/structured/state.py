"""What is known of each process while its log is read: strings, epochs, compiles and rows.

``torch._dynamo.reset()`` starts torch's frame ids again, so an id alone names several compiles. A
new epoch begins where the opening record of a compile (chromium ``dynamo`` B, or ``dynamo_start``)
comes a second time for the same id, or names 0/0 when other frames were already compiled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from itertools import count, takewhile
from typing import Any

import msgspec

from traceview.compile_id import CompileId, compile_key
from traceview.parse.cutting import Record, Stamp
from traceview.parse.damage import Damage
from traceview.torchtext.frames import StackFrame
from traceview.torchtext.phases import CAPTURE

Row = dict[str, Any]
_EPOCHS_BACK = 50
_QUARTER_US = 15 * 60 * 1_000_000
_DAY_US = 86_400 * 1_000_000
_Ids = tuple[int, int | None, int | None, int | None]
#: Phases that every attempt of a compile has; after its end they belong to another one.
MAY_REPEAT = frozenset(("bytecode_tracing", "build_guards"))
TABLES = (
    "compiles", "compile_phases", "graph_breaks", "recompiles", "cache_events", "graphs",
    "generated_kernels", "kernel_calls", "symbols", "log_records", "autotune_choices",
    "cudagraph_events", "guards", "cache_components", "configs", "collective_schedules",
)  # fmt: skip


class Clock:
    """Turns stamps of one process into Unix µs once ``observe`` has seen a record with both.

    ``V1120 20:09:53.524000`` is local time without year or zone, but records carry Unix times too
    (chromium events' ``ts``, metrics' ``start_time_us``). One such pair fixes both.
    """

    def __init__(self) -> None:
        self._year: int | None = None
        self._offset_us = 0.0

    @property
    def fixed(self) -> bool:
        """Whether year and zone are known."""
        return self._year is not None

    def observe(self, stamp: Stamp, unix_us: float) -> None:
        """A record stamped ``stamp`` was written at about ``unix_us``; only the first one counts.

        Zones are whole quarters of an hour, so a few minutes between the two do no harm.
        """
        if self._year is not None or not 0 < unix_us < 4e15:
            return
        year = datetime.fromtimestamp(unix_us / 1e6, tz=timezone.utc).year
        for candidate in (year, year - 1, year + 1):
            naive = _naive_us(candidate, stamp)
            if naive is not None and abs(naive - unix_us) < 1.1 * _DAY_US:
                self._year = candidate
                self._offset_us = round((naive - unix_us) / _QUARTER_US) * float(_QUARTER_US)
                return

    def unix_us(self, stamp: Stamp) -> float | None:
        """``stamp`` as Unix µs; None before a year is known or where it is no date."""
        if self._year is None:
            return None
        naive = _naive_us(self._year, stamp)
        return None if naive is None else naive - self._offset_us


def _naive_us(year: int, stamp: Stamp) -> float | None:
    text = stamp.decode()
    try:
        moment = datetime.fromisoformat(f"{year}-{text[:2]}-{text[2:4]}T{text[5:]}+00:00")
    except ValueError:
        return None
    return moment.timestamp() * 1e6


class CodeSection(msgspec.Struct):
    """One generated module: its graph, its kernels, their calls; whether its cache key is known."""

    graph: Row
    kernels: list[Row]
    calls: list[Row]
    lowered: list[Row]
    keyed: bool = False
    traced: bool = False

    def take_key(self, key: str | None) -> None:
        """Its look-up said ``key``: every row carries it."""
        self.keyed = True
        if key is not None:
            for row in (self.graph, *self.kernels, *self.calls):
                row["graph_key"] = key


class Compile(msgspec.Struct):
    """One compile of one process and epoch while its records come in."""

    key: str
    name: str
    compile_id: CompileId
    epoch: int
    line: int
    opened: set[str] = set()
    closed: Stamp | None = None
    attempts: set[int] = set()
    forward: Row = {}
    backward: Row | None = None
    dynamo_event: Row = {}
    started_us: float | None = None
    stamp_us: Callable[[], float | None] | None = None
    symbols: int = 0
    failed: bool = False
    breaks_skipped: bool = False
    exported: bool = False
    graphs: int = 0
    sections: list[CodeSection] = []
    waiting: list[Row] = []
    waiting_key: str | None = None

    def add_code(self, section: CodeSection) -> None:
        """Join the code with the graphs lowered before it and with a key that waits for it."""
        self.sections.append(section)
        for lowered in self.waiting:
            lowered["aot_id"] = section.graph["aot_id"]
        self.waiting.clear()
        if self.waiting_key is not None:
            section.take_key(self.waiting_key)
            self.waiting_key = None

    def add_key(self, key: str | None) -> CodeSection | None:
        """Give ``key`` to the newest generated code that has none yet, and return that.

        torch logs the code first and the look-up after it, forward and backward each. A key without
        code before it waits for the next code.
        """
        section = next((s for s in reversed(self.sections) if not s.keyed), None)
        if section is None:
            self.waiting_key = key
        else:
            section.take_key(key)
        return section


class Tally(msgspec.Struct):
    """Records of one kind: who reads them, how many, and the bytes of their payloads."""

    parser: Parser | None
    records: int = 0
    payload_bytes: int = 0


class OpenPhase(msgspec.Struct):
    """A chromium B whose E has not come yet."""

    row: Row
    children_us: float = 0.0


class LookUp(msgspec.Struct):
    """Lines of components of a cache's last look-up, and the same in the order they first came."""

    lines: list[str] = []
    known: dict[str, None] = {}


class Block(msgspec.Struct):
    """Rows of one record that differ in ``columns`` only; ``head`` are the others.

    All blocks of a table have the same columns.
    """

    head: Row
    columns: dict[str, list[Any]]
    rows: int


class Process(msgspec.Struct):
    """One process in one file."""

    pid: int
    pass_name: str
    raw_file: str
    rank: int | None = None
    strings: dict[int, str] = {}
    clock: Clock = msgspec.field(default_factory=Clock)
    epoch: int = 0
    compiles: dict[_Ids, Compile] = {}
    rows: dict[str, list[Row]] = msgspec.field(
        default_factory=lambda: {name: [] for name in TABLES}
    )
    blocks: dict[str, list[Block]] = {}
    phases: list[OpenPhase] = []
    loose: list[OpenPhase] = []
    phase_ids: Iterator[int] = msgspec.field(default_factory=count)
    tallies: dict[tuple[str, str | None], Tally] = {}
    traced: dict[str | None, list[dict[str, str]]] = {}
    autotune_tables: int = 0
    opening: Record | None = None
    components: dict[str, LookUp] = {}
    look_ups: Counter[str] = msgspec.field(default_factory=Counter)
    configs: dict[str, bytes] = {}
    config_numbers: dict[str, int] = {}
    versions: dict[str, str] = {}

    def head(self, record: Record, compile: Compile | None) -> Row:
        """The columns that every row of ``record`` has, and its compile."""
        rank = record.context.rank
        return {
            "pass": self.pass_name,
            "rank": self.rank if rank is None else rank,
            "raw_file": self.raw_file,
            "raw_line": record.line,
            "compile_key": compile.key if compile else None,
            "compile_id": compile.name if compile else None,
        }

    def add(self, table: str, record: Record, compile: Compile | None, row: Row) -> Row:
        """Keep ``row`` of ``table``, with its head, its compile and its place in the log."""
        full = row | self.head(record, compile)
        self.rows[table].append(full)
        return full

    def add_block(self, table: str, head: Row, columns: dict[str, list[Any]]) -> None:
        """Keep rows of ``table`` that differ in ``columns`` only."""
        rows = len(next(iter(columns.values())))
        self.blocks.setdefault(table, []).append(Block(head, columns, rows))

    def find(self, record: Record, opening: str | None = None) -> Compile | None:
        """The compile that ``record`` belongs to, made if it is new; None if it names none.

        ``opening`` is the kind of the record where a compile has one of it: a second one for the
        same id, or one after what closes a compile, begins a new epoch, unless it is the same line
        again. Several kinds do, as any of them may be lost.
        """
        context = record.context
        frame, number = context.frame_id, context.frame_compile_id
        autograd = context.compiled_autograd_id
        if (frame is None and autograd is None) or (frame is not None and number is None):
            return None
        known = self.compiles.get((self.epoch, autograd, frame, number))
        if opening and self._resets(known, frame, number, opening, record):
            self.epoch += 1
            known = None
        if known is None and not opening:
            known = self._earlier(autograd, frame, number)
        if known is None:
            known = self._new(record)
        if opening:
            known.opened.add(opening)
        if context.attempt is not None:
            known.attempts.add(context.attempt)
        return known

    def _earlier(
        self, autograd: int | None, frame: int | None, number: int | None
    ) -> Compile | None:
        """The compile of that id in the last epoch that has one: a backward may outlive a reset."""
        for epoch in range(self.epoch - 1, max(-1, self.epoch - 1 - _EPOCHS_BACK), -1):
            if found := self.compiles.get((epoch, autograd, frame, number)):
                return found
        return None

    def _new(self, record: Record) -> Compile:
        context = record.context
        frame, autograd = context.frame_id, context.compiled_autograd_id
        number = context.frame_compile_id if frame is not None else None
        compile_id = CompileId(frame, number, context.attempt or 0, autograd)
        key = compile_key(self.pass_name, self.pid, self.epoch, compile_id)
        made = Compile(key, str(compile_id), compile_id, self.epoch, record.line)
        stamp, clock = record.stamp, self.clock
        made.stamp_us = lambda: clock.unix_us(stamp)
        made.exported = any(phase.row["name"] == CAPTURE for phase in self.phases)
        self.compiles[self.epoch, autograd, frame, context.frame_compile_id] = made
        return made

    def _resets(
        self,
        known: Compile | None,
        frame: int | None,
        number: int | None,
        opening: str,
        record: Record,
    ) -> bool:
        doubled, self.opening = self.opening, record
        if known is not None:
            over = known.closed is not None and known.closed <= record.stamp
            once = opening not in MAY_REPEAT
            again = once and (opening in known.opened or self._has_later(known, frame))
            return (over or again) and (doubled is None or record.head != doubled.head)
        if frame != 0 or number != 0:
            return False
        here = (c for (epoch, *_), c in self.compiles.items() if epoch == self.epoch)
        return any(c.compile_id.frame_id is not None for c in here)

    def _has_later(self, known: Compile, frame: int | None) -> bool:
        """Whether frame 0 is opened although others were after it: then its own opening is lost."""
        if frame != 0:
            return False
        later = takewhile(lambda c: c.line > known.line, reversed(self.compiles.values()))
        return any(c.opened and c.compile_id.frame_id for c in later)

    def stack(self, frames: object) -> tuple[StackFrame, ...]:
        """A list of interned stack frames, outermost first; what is damaged is left out."""
        found = []
        for frame in frames if isinstance(frames, list) else ():
            if not isinstance(frame, dict):
                continue
            file = frame.get("filename")
            name = self.strings.get(file) if isinstance(file, int) else file
            name = name or frame.get("uninterned_filename")
            if not isinstance(name, str):
                continue
            line, code = frame.get("line"), frame.get("loc")
            found.append(
                StackFrame(
                    name,
                    line if isinstance(line, int) and line >= 0 else None,
                    str(frame.get("name") or "") or None,
                    code if isinstance(code, str) and code else None,
                )
            )
        return tuple(found)


class Reader(msgspec.Struct):
    """What a parser gets with the record: its process and where damage is counted."""

    process: Process
    damage: Damage

    def unreadable(self, record: Record, kind: str, example: str) -> None:
        """Count damage inside ``record``."""
        self.damage.count(self.process.raw_file, kind, record.line, example)


Parser = Callable[[Reader, Record], None]
