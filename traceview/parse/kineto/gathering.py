"""Events of a trace put apart by what they are, as columns."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

import msgspec

from traceview.parse.damage import Damage
from traceview.parse.kineto.columns import Columns
from traceview.parse.kineto.events import NO_ARGS, Event, decode_events
from traceview.parse.kineto.repair import mend
from traceview.parse.kineto.rest import Rows, Words
from traceview.parse.kineto.splitter import Slice

KINDS = {
    "kernel": "kernel",
    "gpu_memcpy": "memcpy",
    "gpu_memset": "memset",
    "cuda_runtime": "call",
    "cuda_driver": "call",
    "cpu_op": "cpu_op",
    "user_annotation": "user_annotation",
}
SIZES = ("grid", "block")
INPUTS = ("input_dims", "input_types", "input_strides", "concrete_inputs", "kernel_file")
_GPU = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
_HOST = KINDS.keys() - _GPU
_MEMORY = "[memory]"
_TIMES = ("ts", "dur")
_IDS = ("external_id", "correlation")
_MEMORY_NUMBERS = ("total_allocated", "allocated", "device_type", "device_id")
_ARGS = attrgetter("args")


class Gathered:
    """What is kept of the events: of the device, of the host, of memory."""

    def __init__(self) -> None:
        self.device = Columns(SIZES, _TIMES, (*_IDS, "device", "stream", "bytes"))
        self.host = Columns(INPUTS, _TIMES, (*_IDS, "sequence", "forward_thread"))
        self.memory = Columns(SIZES, ("ts",), _MEMORY_NUMBERS)

    def add(self, events: list[Event]) -> None:
        """Take ``events``; they may be forgotten afterwards."""
        spans = [event for event in events if event.cat in KINDS and event.ph == "X"]
        if None in map(_ARGS, spans):
            for event in spans:
                event.args = event.args or NO_ARGS
        self.host.add([event for event in spans if event.cat in _HOST])
        self.device.add([event for event in spans if event.cat in _GPU])
        self.memory.add([event for event in events if event.name == _MEMORY and event.args])

    def given(self) -> Iterator[Words | Rows]:
        """All of it for another process, in which ``take`` appends it."""
        for sort, columns in enumerate(self._sorts):
            yield Words(sort, list(columns.whats), list(columns.writings))
            yield from (Rows(sort, part) for part in columns.parts())

    def take(self, item: Words | Rows) -> None:
        """Append what ``given`` gave elsewhere: the words of a sort before its rows."""
        columns = self._sorts[item.sort]
        if isinstance(item, Words):
            columns.translate(item.whats, item.writings)
        else:
            columns.append(item.columns)

    @property
    def _sorts(self) -> tuple[Columns, ...]:
        return self.device, self.host, self.memory


def decoded(part: Slice, name: str, damage: Damage) -> list[Event]:
    """The events of a slice; one that is no JSON is mended event by event."""
    events: list[Event] = []
    if part.data:
        try:
            events = decode_events(b"[" + part.data + b"]")
        except (msgspec.DecodeError, UnicodeDecodeError):
            events = _mended(part, name, damage)
    if not part.whole:
        damage.count(name, "truncated", None, part.data[:200].decode(errors="replace"))
    return events


def _mended(part: Slice, name: str, damage: Damage) -> list[Event]:
    kept = []
    for found in mend(part.data):
        if isinstance(found, Event):
            kept.append(found)
        elif part.whole:
            damage.count(name, "bad_json", None, found[:200].decode(errors="replace"))
    return kept
