"""Events of a trace: decoded as far as the tables need them, repaired, and kept as columns.

An event that is not valid JSON is tried on its own and repaired where its meaning is plain. torch
2.13's C++ exporter writes the double quotes of a ``record_function`` name unescaped, older ones raw
control bytes and Windows backslashes too; a copy of length 0 has ``inf`` as its bandwidth.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from operator import attrgetter
from typing import Any

import msgspec

from traceview.json_errors import NOT_JSON
from traceview.parse.damage import UNKNOWN_CATEGORY, Damage
from traceview.parse.kineto.columns import MISSING, Columns, Rows, Words
from traceview.parse.kineto.splitter import Slice, objects

Number = Any  # whole, or in foreign traces broken or text: columns are cast later
NOTHING = msgspec.Raw()


class Args(msgspec.Struct, frozen=True, gc=False):
    """The arguments of an event that the tables need; lists stay text, as their depth varies.

    In the order in which torch writes them: the decoder looks for the next one first.
    """

    external_id: Number = msgspec.field(name="External id", default=MISSING)
    sequence: Number = msgspec.field(name="Sequence number", default=MISSING)
    forward_thread: Number = msgspec.field(name="Fwd thread id", default=MISSING)
    concrete_inputs: msgspec.Raw = msgspec.field(name="Concrete Inputs", default=NOTHING)
    input_types: msgspec.Raw = msgspec.field(name="Input type", default=NOTHING)
    input_strides: msgspec.Raw = msgspec.field(name="Input Strides", default=NOTHING)
    input_dims: msgspec.Raw = msgspec.field(name="Input Dims", default=NOTHING)
    device: Number = MISSING
    stream: Number = MISSING
    correlation: Number = MISSING
    grid: msgspec.Raw = NOTHING
    block: msgspec.Raw = NOTHING
    bytes: Number = MISSING
    kernel_file: msgspec.Raw = NOTHING
    total_allocated: Number = msgspec.field(name="Total Allocated", default=MISSING)
    allocated: Number = msgspec.field(name="Bytes", default=MISSING)
    device_type: Number = msgspec.field(name="Device Type", default=MISSING)
    device_id: Number = msgspec.field(name="Device Id", default=MISSING)


NO_ARGS = Args()


class Event(msgspec.Struct, gc=False):
    """One event; ``ts`` and ``dur`` in µs with three decimals."""

    ph: str = ""
    cat: str | None = None
    name: str = ""
    pid: int | float | str | None = None
    tid: int | float | str | None = None
    ts: float | None = None
    dur: float | None = None
    args: Args | None = NO_ARGS


decode_events = msgspec.json.Decoder(list[Event]).decode


_BETWEEN = re.compile(rb"\n[ \t]*\},[ \t]*\r?\n[ \t]*\{|\},\n\{")
_NOT_NUMBERS = re.compile(
    rb"(?<=[:\[,\s])(?:[-+]?(?:nan|inf(?:inity)?))(?=\s*[,}\]\n])", re.IGNORECASE
)
_NAME = re.compile(rb'"name"\s*:\s*"')
_AFTER_NAME = re.compile(rb'"\s*,\s*"(?:pid|ts|ph|cat|tid|dur|args|s|id|bp)"\s*:')
_CONTROL = re.compile(rb"[\x00-\x1f]")
_BACKSLASH = re.compile(rb'\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})')
_ESCAPED_OR_QUOTE = re.compile(rb'\\.|"', re.DOTALL)


def _apart(data: bytes) -> Iterator[bytes]:
    if _BETWEEN.search(data) is None:
        yield from objects(data)
        return
    start = 0
    for match in _BETWEEN.finditer(data):
        comma = data.index(b",", match.start())
        yield data[start:comma]
        start = comma + 1
    yield data[start:]


def _decoded(text: bytes) -> Event | None:
    try:
        found = decode_events(b"[" + text + b"]")
    except NOT_JSON:
        return None
    return found[0] if len(found) == 1 else None


def _quoted(event: bytes) -> bytes:
    """Its name with its own quotes, control bytes and stray backslashes escaped."""
    begin = _NAME.search(event)
    end = begin and _AFTER_NAME.search(event, begin.end())
    if begin is None or end is None:
        return event
    name = _BACKSLASH.sub(rb"\\\\", event[begin.end() : end.start()])
    name = _ESCAPED_OR_QUOTE.sub(lambda m: rb"\"" if m[0] == b'"' else m[0], name)
    name = _CONTROL.sub(lambda m: b"\\u%04x" % m[0][0], name)
    return event[: begin.end()] + name + event[end.start() :]


#: Category → kind; those with a capital letter are torch 1.8's to 1.11's.
KINDS = {
    "kernel": "kernel",
    "gpu_memcpy": "memcpy",
    "gpu_memset": "memset",
    "cuda_runtime": "call",
    "cuda_driver": "call",
    "cpu_op": "cpu_op",
    "user_annotation": "user_annotation",
    "Kernel": "kernel",
    "Memcpy": "memcpy",
    "Memset": "memset",
    "Runtime": "call",
    "Operator": "cpu_op",
}
#: Categories of what is no work: spans that repeat others, Python, waits, the profiler itself.
PASSED_OVER = frozenset(
    {
        "Trace", "overhead", "python_function", "gpu_user_annotation", "cpu_instant_event", "ac2g",
        "fwdbwd", "cuda_sync", "cuda_event", "cuda_profiler_range", "external_correlation",
        "async_cpu_to_gpu", "async", "Python", "Memory",
    }
)  # fmt: skip  # names, of which none needs a line of its own
_KNOWN = KINDS.keys() | PASSED_OVER
SIZES = ("grid", "block")
INPUTS = ("input_dims", "input_types", "input_strides", "concrete_inputs", "kernel_file")
_GPU = frozenset(cat for cat, kind in KINDS.items() if kind in ("kernel", "memcpy", "memset"))
_HOST = KINDS.keys() - _GPU
_MEMORY = "[memory]"
_TIMES = ("ts", "dur")
_IDS = ("external_id", "correlation")
_CATEGORY = attrgetter("cat")
_MEMORY_NUMBERS = ("total_allocated", "allocated", "device_type", "device_id")


class Gathered:
    """What is kept of the events: of the device, of the host, of memory."""

    def __init__(self) -> None:
        self.device = Columns(SIZES, _TIMES, (*_IDS, "device", "stream", "bytes"))
        self.host = Columns(INPUTS, _TIMES, (*_IDS, "sequence", "forward_thread"))
        self.memory = Columns(SIZES, ("ts",), _MEMORY_NUMBERS)
        self._unread: Counter[str | None] = Counter()

    def add(self, events: list[Event]) -> None:
        """Take ``events``; they may be forgotten afterwards."""
        spans = [event for event in events if event.cat in KINDS and event.ph == "X"]
        if None in map(attrgetter("args"), spans):
            for event in spans:
                event.args = event.args or NO_ARGS
        self.host.add([event for event in spans if event.cat in _HOST])
        self.device.add([event for event in spans if event.cat in _GPU])
        self.memory.add([event for event in events if event.name == _MEMORY and event.args])
        if unknown := set(map(_CATEGORY, events)) - _KNOWN:
            self._unread.update(e.cat for e in events if e.cat in unknown and e.ph == "X")

    def count_unread(self, name: str, damage: Damage) -> None:
        """Count the spans, under ``name``, whose category says nothing here."""
        if bare := self._unread.pop(None, 0):
            damage.count(name, "no_category", None, "spans without a category", times=bare)
        if self._unread:
            found = ", ".join(f"{cat}: {times:,}" for cat, times in self._unread.most_common())
            damage.count(name, UNKNOWN_CATEGORY, None, found, times=self._unread.total())
            self._unread.clear()

    def given(self) -> Iterator[Words | Rows]:
        """All of it for another process, in which ``take`` appends it."""
        for sort, columns in enumerate(self._sorts):
            words = list(columns.whats), list(columns.writings)
            yield Words(sort, *words, columns.left_out)
            yield from (Rows(sort, part) for part in columns.parts())

    def take(self, item: Words | Rows) -> None:
        """Append what ``given`` gave elsewhere: the words of a sort before its rows."""
        columns = self._sorts[item.sort]
        if isinstance(item, Words):
            columns.translate(item)
        else:
            columns.append(item.columns)

    @property
    def _sorts(self) -> tuple[Columns, ...]:
        return self.device, self.host, self.memory


def decoded(part: Slice, name: str, damage: Damage) -> list[Event]:
    """The events of a slice; one that is not JSON is repaired event by event."""
    events: list[Event] = []
    if part.data:
        try:
            events = decode_events(b"[" + part.data + b"]")
        except NOT_JSON:
            for text in _apart(part.data):
                found = _decoded(text)
                if found is None:
                    readable = text.decode("utf-8", errors="replace").encode()
                    found = _decoded(_NOT_NUMBERS.sub(b"null", _quoted(readable)))
                if found is not None:
                    events.append(found)
                elif part.whole:
                    damage.count(name, "bad_json", None, text[:200].decode(errors="replace"))
    if not part.whole:
        damage.count(name, "truncated", None, part.data[:200].decode(errors="replace"))
    return events
